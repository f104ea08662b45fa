/* What starting a program costs at least: linked statically with musl, as kd-preflight is. */
int main(void)
{
	return 0;
}
