/* The entry of kd-probe, in place of a libc's start files.
 *
 * It is entered by a dynamic loader (glibc's or musl's, started on it by the supervisor), or by the kernel itself where
 * a container has no loader. In the second case nobody has applied its relocations, so it does that itself; imported
 * symbols stay unbound then, and the `loaded` of native_main says so. */
#include "native.h"
#include "native_system.h"

#include <linux/elf.h>
#include <stddef.h>
#include <stdint.h>

void native_start(const uintptr_t *stack);

extern const unsigned char start_image[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
extern const Elf64_Dyn start_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));

/* Holds the load address once relocated, 0 (or an offset) before: read through volatile, so that the compiler does not
 * answer with what the linker would put there. */
static const void *const volatile RELOCATED = start_image;

#if defined(__x86_64__)
__asm__(".globl _start\n"
        ".hidden _start\n"
        ".type _start,@function\n"
        "_start:\n"
        "	xorl %ebp, %ebp\n"
        "	movq %rsp, %rdi\n"
        "	andq $-16, %rsp\n"
        "	call native_start\n"
        "	hlt\n"
        ".size _start,.-_start\n");
enum { START_RELATIVE = 8 /* R_X86_64_RELATIVE */ };
#elif defined(__aarch64__)
__asm__(".globl _start\n"
        ".hidden _start\n"
        ".type _start,%function\n"
        "_start:\n"
        "	mov x29, #0\n"
        "	mov x30, #0\n"
        "	mov x0, sp\n"
        "	and sp, x0, #-16\n"
        "	bl native_start\n"
        "	brk #1\n"
        ".size _start,.-_start\n");
enum { START_RELATIVE = 1027 /* R_AARCH64_RELATIVE */ };
#endif

static void start_relocate(uintptr_t base)
{
	const Elf64_Rela *rela = NULL;
	size_t size = 0;

	for (const Elf64_Dyn *entry = start_dynamic; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_RELA)
			rela = (const Elf64_Rela *)(base + entry->d_un.d_ptr);
		else if (entry->d_tag == DT_RELASZ)
			size = entry->d_un.d_val;
	}
	for (size_t i = 0; rela && i < size / sizeof *rela; i++)
		if ((rela[i].r_info & 0xffffffffU) == START_RELATIVE)
			*(uintptr_t *)(base + rela[i].r_offset) = base + (uintptr_t)rela[i].r_addend;
}

__attribute__((used)) void native_start(const uintptr_t *stack)
{
	int argc = (int)stack[0];
	char **argv = (char **)(uintptr_t)(stack + 1);
	bool loaded = RELOCATED == (const void *)start_image;

	if (!loaded)
		start_relocate((uintptr_t)start_image);
	system_exit(native_main(argc, argv, argv + argc + 1, loaded));
}
