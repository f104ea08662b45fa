/* Prints $SAY, waits $SAY_SLEEP seconds, exits with $SAY_EXIT: an nvidia-smi for tests, under whatever name it is
 * copied to (a worker is never a script). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *variable(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value ? value : otherwise;
}

int main(void)
{
	(void)fputs(variable("SAY", ""), stdout);
	(void)fflush(stdout);
	(void)sleep((unsigned int)atoi(variable("SAY_SLEEP", "0")));
	return atoi(variable("SAY_EXIT", "0"));
}
