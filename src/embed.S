/* See embed.h. Directives only, so that one file serves every architecture; the paths are found by -I. */

.macro embed name, file
	.global \name, \name\()_size
	.type \name, STT_OBJECT
	.balign 16
\name:
	.incbin "\file"
9:
	.byte 0 /* so that text can be used as a string */
	.size \name, 9b - \name
	.balign 8
	.type \name\()_size, STT_OBJECT
	.size \name\()_size, 8
\name\()_size:
	.quad 9b - \name
.endm

	.section .rodata.embed, "a"
	embed embed_probe_py, "src/worker/probe.py"
	embed embed_kd_probe, "build/kd-probe"

	.section .note.GNU-stack, ""
