/* See embed.h. Directives only, so that one file serves every architecture; the paths are found by -I. */

.macro embed name, file
	.global \name, \name\()_end
	.type \name, STT_OBJECT
	.balign 16
\name:
	.incbin "\file"
\name\()_end:
	.byte 0 /* so that text can be used as a string */
	.size \name, . - \name
.endm

	.section .rodata.embed, "a"
	embed embed_probe_py, "src/worker/probe.py"
	embed embed_kd_probe, "build/kd-probe"

	.section .note.GNU-stack, ""
