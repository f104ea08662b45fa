/* The linker's stand-in for libdl.so.2: kd-probe is linked against the soname and the symbol versions of this, never
 * against the libdl of the build machine, whose versions would tie it to that glibc. It is not shipped. */
void dlopen(void);
void dlsym(void);
void dlerror(void);

void dlopen(void)
{
}

void dlsym(void)
{
}

void dlerror(void)
{
}
