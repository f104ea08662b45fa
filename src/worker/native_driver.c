#include "native_driver.h"

#include "native_library.h"

int driver_note(struct driver *driver, enum call call, int number)
{
	if (number)
		driver->failed = call;
	return number;
}

const char *driver_bind(struct driver *driver, const struct backend *backend, void *library)
{
	*driver = (struct driver){.backend = backend};
	for (unsigned call = 0; call < CALL_MAX; call++) {
		const struct symbol *symbol = &backend->symbols[call];
		if (!symbol->name)
			continue;
		driver->symbols[call] = library_symbol(library, symbol->name);
		if (!driver->symbols[call] && symbol->older)
			driver->symbols[call] = library_symbol(library, symbol->older);
		if (!driver->symbols[call] && !symbol->optional)
			return symbol->name;
	}
	return NULL;
}

const char *driver_call_name(const struct driver *driver, enum call call)
{
	return driver->backend->symbols[call].name;
}
