/* The verdict over its whole input space: every shape of python worker x every shape of native worker x what was asked,
 * held against the rules of CONTRACT.md 3 written a second time, the short way. */
#include "tap.h"
#include "verdict.h"

#include <errno.h>
#include <stdlib.h>

enum shape {
	SHAPE_NONE,
	SHAPE_SANDBOX_FAILED,
	SHAPE_EXEC_FAILED,
	SHAPE_SILENT,     /* exit 0, not one line */
	SHAPE_DIED_EARLY, /* a signal before the first line */
	SHAPE_PASS,
	SHAPE_PASS_EXIT_1,
	SHAPE_PASS_MALFORMED,
	SHAPE_PASS_UNENDED,
	SHAPE_PASS_WITHOUT_LOSS,
	SHAPE_PASS_OTHER_DEVICE,
	SHAPE_WRONG_PRODUCT,
	SHAPE_WRONG_LOSS,
	SHAPE_WRONG_GRADIENT,
	SHAPE_NAN_LOSS,
	SHAPE_WRONG_THEN_CRASH,
	SHAPE_SIGNAL,
	SHAPE_TIMEOUT,
	SHAPE_UNKILLABLE,
	SHAPE_NO_TURN,
	SHAPE_TORCH_MISSING,
	SHAPE_IMPORT_FAILED,
	SHAPE_BACKEND_ABSENT,
	SHAPE_GPU_UNAVAILABLE,
	SHAPE_INDEX_INVALID,
	SHAPE_OUT_OF_MEMORY,
	SHAPE_RUNTIME_ERROR,
	SHAPE_NO_IMAGE,
	SHAPE_COUNT
};

struct sample {
	struct result result;
	struct outcome outcome;
};

static const struct outcome absent = {.fate = FATE_NOT_STARTED};

static uint32_t bits(float value)
{
	uint32_t out;
	memcpy(&out, &value, sizeof out);
	return out;
}

static void compute(struct result *result, int device)
{
	static const float PRODUCT[] = {4, 4, 10, 8}, GRADIENT[] = {16, 24, 40, 52};
	struct computation *c = &result->computations[result->computation_count++];

	*c = (struct computation){.device = device, .have_product = true, .have_loss = true, .have_gradient = true};
	for (int i = 0; i < 4; i++) {
		c->product[i] = bits(PRODUCT[i]);
		c->gradient[i] = bits(GRADIENT[i]);
	}
	c->loss = bits(196);
}

static void fail(struct result *result, enum code code, enum stage stage)
{
	result->failed = result->ended = true;
	result->computation_count = 0;
	result->code = code;
	result->stage = stage;
}

static void make(struct sample *s, enum worker_kind kind, enum shape shape, int device)
{
	struct result *r = &s->result;

	result_init(r, kind);
	s->outcome = (struct outcome){.fate = FATE_EXITED, .result = r, .call = "x", .elapsed_ms = 7};
	r->total = 100;
	r->device_count = r->torch_device_count = 1;
	(void)strcpy(kind == WORKER_PYTHON ? r->torch_backend : r->backend, "cuda");
	r->stage = STAGE_COMPLETE;
	r->ended = r->ended_pass = true;
	compute(r, device);
	struct computation *c = r->computations;
	switch (shape) {
	case SHAPE_NONE:
		s->outcome.fate = FATE_NOT_STARTED;
		break;
	case SHAPE_SANDBOX_FAILED:
		s->outcome.fate = FATE_SANDBOX_FAILED;
		break;
	case SHAPE_EXEC_FAILED:
		s->outcome.fate = FATE_EXEC_FAILED;
		break;
	case SHAPE_SILENT:
		result_init(r, kind);
		break;
	case SHAPE_DIED_EARLY:
		result_init(r, kind);
		s->outcome.fate = FATE_SIGNALED;
		s->outcome.signal = 4;
		break;
	case SHAPE_PASS:
		break;
	case SHAPE_PASS_EXIT_1:
		s->outcome.exit_status = 1;
		break;
	case SHAPE_PASS_MALFORMED:
		r->malformed = true;
		break;
	case SHAPE_PASS_UNENDED:
		r->ended = r->ended_pass = false;
		break;
	case SHAPE_PASS_WITHOUT_LOSS:
		c->have_loss = false;
		break;
	case SHAPE_PASS_OTHER_DEVICE:
		c->device = 5;
		break;
	case SHAPE_WRONG_PRODUCT:
		c->product[2] = bits(9);
		break;
	case SHAPE_WRONG_LOSS:
		c->loss = bits(196.00002f);
		break;
	case SHAPE_WRONG_GRADIENT:
		c->gradient[3] = 0;
		break;
	case SHAPE_NAN_LOSS:
		c->loss = 0x7fc00000;
		break;
	case SHAPE_WRONG_THEN_CRASH:
		c->product[0] = 0;
		s->outcome.fate = FATE_SIGNALED;
		s->outcome.signal = 11;
		break;
	case SHAPE_SIGNAL:
		r->stage = STAGE_DEVICE;
		r->computation_count = 0;
		s->outcome.fate = FATE_SIGNALED;
		s->outcome.signal = 11;
		break;
	case SHAPE_TIMEOUT:
	case SHAPE_UNKILLABLE:
	case SHAPE_NO_TURN:
		r->stage = STAGE_DEVICE;
		r->computation_count = 0;
		s->outcome.fate = shape == SHAPE_NO_TURN ? FATE_NO_TURN : FATE_TIMEOUT;
		s->outcome.unkillable = shape == SHAPE_UNKILLABLE;
		break;
	case SHAPE_TORCH_MISSING:
		fail(r, CODE_TORCH_MISSING, STAGE_IMPORT);
		break;
	case SHAPE_IMPORT_FAILED:
		fail(r, CODE_TORCH_IMPORT_FAILED, STAGE_IMPORT);
		break;
	case SHAPE_BACKEND_ABSENT:
		fail(r, CODE_GPU_BACKEND_ABSENT, STAGE_BACKEND);
		break;
	case SHAPE_GPU_UNAVAILABLE:
		fail(r, CODE_GPU_UNAVAILABLE, STAGE_DEVICE);
		break;
	case SHAPE_INDEX_INVALID:
		fail(r, CODE_DEVICE_INDEX_INVALID, STAGE_DEVICE);
		break;
	case SHAPE_OUT_OF_MEMORY:
		fail(r, CODE_OUT_OF_MEMORY, STAGE_ALLOCATION);
		break;
	case SHAPE_RUNTIME_ERROR:
		fail(r, CODE_RUNTIME_ERROR, STAGE_ALLOCATION);
		break;
	case SHAPE_NO_IMAGE:
		fail(r, CODE_RUNTIME_ERROR, STAGE_PRODUCT);
		r->hints[r->hint_count++] = HINT_NO_KERNEL_IMAGE;
		break;
	case SHAPE_COUNT:
		break;
	}
}

static bool is_wrong(enum shape shape)
{
	return shape >= SHAPE_WRONG_PRODUCT && shape <= SHAPE_WRONG_THEN_CRASH;
}

/* What one worker alone comes to. */
static enum code own_code(enum shape shape, bool python, enum device device)
{
	switch (shape) {
	case SHAPE_SANDBOX_FAILED:
		return CODE_SANDBOX_FAILED;
	case SHAPE_EXEC_FAILED:
		return python ? CODE_INTERPRETER_FAILED : CODE_WORKER_FAILED;
	case SHAPE_SILENT:
	case SHAPE_DIED_EARLY:
		return python ? CODE_INTERPRETER_FAILED : CODE_WORKER_FAILED;
	case SHAPE_PASS:
		return device == DEVICE_CPU ? CODE_CPU_CHECK_PASSED : CODE_GPU_CHECK_PASSED;
	case SHAPE_TIMEOUT:
	case SHAPE_UNKILLABLE:
	case SHAPE_NO_TURN:
		return CODE_TIMEOUT;
	case SHAPE_TORCH_MISSING:
		return CODE_TORCH_MISSING;
	case SHAPE_IMPORT_FAILED:
		return CODE_TORCH_IMPORT_FAILED;
	case SHAPE_BACKEND_ABSENT:
		return CODE_GPU_BACKEND_ABSENT;
	case SHAPE_GPU_UNAVAILABLE:
		return CODE_GPU_UNAVAILABLE;
	case SHAPE_INDEX_INVALID:
		return CODE_DEVICE_INDEX_INVALID;
	case SHAPE_OUT_OF_MEMORY:
		return CODE_OUT_OF_MEMORY;
	case SHAPE_RUNTIME_ERROR:
	case SHAPE_NO_IMAGE:
		return CODE_RUNTIME_ERROR;
	default:
		return is_wrong(shape) ? CODE_CHECK_FAILED : CODE_WORKER_FAILED;
	}
}

static enum code expected(enum device device, enum torch_rule rule, enum shape python, enum shape native,
                          int interrupted)
{
	if (interrupted)
		return CODE_INTERRUPTED;
	if (is_wrong(native))
		return CODE_CHECK_FAILED;
	if (native == SHAPE_SANDBOX_FAILED)
		return CODE_SANDBOX_FAILED;
	bool torch_counts = rule == TORCH_REQUIRED ||
	                    (rule == TORCH_IF_PRESENT && python != SHAPE_NONE && python != SHAPE_TORCH_MISSING);
	if (torch_counts && python != SHAPE_NO_TURN)
		return own_code(python, true, device);
	return own_code(native, false, device);
}

static bool has_hint(const struct verdict *verdict, enum hint hint)
{
	for (int i = 0; i < verdict->hint_count; i++)
		if (verdict->hints[i] == hint)
			return true;
	return false;
}

static void test_space(void)
{
	static struct sample python, native;
	int cases = 0, bad = 0, bad_hint = 0, bad_pass = 0;

	for (int device = DEVICE_GPU; device <= DEVICE_CPU; device++)
		for (int rule = TORCH_NOT_ASKED; rule <= TORCH_REQUIRED; rule++)
			for (int p = 0; p < SHAPE_COUNT; p++)
				for (int n = 0; n < SHAPE_COUNT; n++)
					for (int interrupted = 0; interrupted <= 15; interrupted += 15) {
						int number = device == DEVICE_CPU ? RESULT_CPU : 0;
						make(&python, WORKER_PYTHON, (enum shape)p, number);
						make(&native, WORKER_NATIVE, (enum shape)n, number);
						struct verdict_input input = {.device = (enum device)device,
						                              .torch_rule = (enum torch_rule)rule,
						                              .expect_devices = -1,
						                              .has_loader = true,
						                              .interrupted_by = interrupted,
						                              .python = &python.outcome,
						                              .native = &native.outcome,
						                              .native_count = 1};
						struct verdict verdict = verdict_decide(&input);
						enum code want = expected((enum device)device, (enum torch_rule)rule,
						                          (enum shape)p, (enum shape)n, interrupted);
						cases++;
						if (verdict.code != want && bad++ < 5)
							printf("# device %d rule %d python %d native %d: got %s, want "
							       "%s\n",
							       device, rule, p, n, code_name(verdict.code),
							       code_name(want));
						bool torch_passes =
						        verdict.by == input.python && code_is_pass(verdict.code);
						bool missing = n == SHAPE_BACKEND_ABSENT || n == SHAPE_NO_IMAGE ||
						               n == SHAPE_EXEC_FAILED || n == SHAPE_NONE;
						bool disagrees = torch_passes && n != SHAPE_PASS && !missing;
						if (disagrees != has_hint(&verdict, HINT_NATIVE_DISAGREES) &&
						    bad_hint++ < 5)
							printf("# native-disagrees: python %d native %d\n", p, n);
						if (code_is_pass(verdict.code) &&
						    (verdict.stage != STAGE_COMPLETE || !verdict.product_verified ||
						     !verdict.gradient_verified || !verdict.have_loss ||
						     verdict.loss != 196))
							bad_pass++;
					}
	ok(cases == 2 * 3 * SHAPE_COUNT * SHAPE_COUNT * 2, "%d cases were decided", cases);
	is_int(bad, 0, "each code is the contract's");
	is_int(bad_hint, 0, "native-disagrees is told exactly when another native failure stands beside a torch pass");
	is_int(bad_pass, 0, "every pass is complete, with product, gradient and loss verified");
}

static void test_stages(void)
{
	static const struct {
		enum shape shape;
		enum stage stage;
		const char *expected, *observed;
	} CASES[] = {
	        {SHAPE_WRONG_PRODUCT, STAGE_PRODUCT, "10", "9"},
	        {SHAPE_WRONG_LOSS, STAGE_GRADIENT, "196", "196.000015"},
	        {SHAPE_WRONG_GRADIENT, STAGE_GRADIENT, "52", "0"},
	        {SHAPE_NAN_LOSS, STAGE_GRADIENT, "196", "nan"},
	};
	static struct sample native;

	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		make(&native, WORKER_NATIVE, CASES[i].shape, 0);
		struct verdict_input input = {.python = &absent,
		                              .expect_devices = -1,
		                              .has_loader = true,
		                              .native = &native.outcome,
		                              .native_count = 1};
		struct verdict verdict = verdict_decide(&input);
		ok(verdict.stage == CASES[i].stage, "wrong numbers are told in their stage (%d)", (int)CASES[i].shape);
		is_string(verdict.detail.expected, CASES[i].expected, "what was expected");
		is_string(verdict.detail.observed, CASES[i].observed, "what was observed");
	}
}

static void test_devices(void)
{
	static struct sample natives[4], python;
	struct outcome outcomes[4];

	for (int i = 0; i < 4; i++) {
		make(&natives[i], WORKER_NATIVE, SHAPE_PASS, i);
		natives[i].result.device_count = 4;
		outcomes[i] = natives[i].outcome;
	}
	struct verdict_input input = {.python = &absent,
	                              .device_index = OPTIONS_INDEX_ALL,
	                              .expect_devices = -1,
	                              .has_loader = true,
	                              .native = outcomes,
	                              .native_count = 4};
	ok(verdict_decide(&input).code == CODE_GPU_CHECK_PASSED, "all devices pass");
	input.native_count = 3;
	ok(verdict_decide(&input).code == CODE_WORKER_FAILED, "a device that had no worker is no pass");
	input.native_count = 4;
	natives[3].result.computations[0].product[0] = 0;
	ok(verdict_decide(&input).code == CODE_CHECK_FAILED, "wrong numbers on the last device are found");
	make(&natives[1], WORKER_NATIVE, SHAPE_GPU_UNAVAILABLE, 1);
	ok(verdict_decide(&input).code == CODE_CHECK_FAILED, "and come before any other failure");
	make(&natives[3], WORKER_NATIVE, SHAPE_OUT_OF_MEMORY, 3);
	ok(verdict_decide(&input).code == CODE_GPU_UNAVAILABLE, "else the earliest layer wins");
	ok(verdict_of_device(&outcomes[0], 0) == CODE_GPU_CHECK_PASSED, "each device keeps its own code");
	ok(verdict_of_device(&outcomes[3], 3) == CODE_OUT_OF_MEMORY, "each device keeps its own code");

	make(&python, WORKER_PYTHON, SHAPE_PASS, 0);
	compute(&python.result, 1);
	python.result.torch_device_count = 3;
	struct verdict_input torch = {.torch_rule = TORCH_REQUIRED,
	                              .device_index = OPTIONS_INDEX_ALL,
	                              .expect_devices = -1,
	                              .python = &python.outcome};
	ok(verdict_decide(&torch).code == CODE_WORKER_FAILED, "torch that left a device out is no pass");
	compute(&python.result, 2);
	ok(verdict_decide(&torch).code == CODE_GPU_CHECK_PASSED, "torch that did them all is one");
	torch.expect_devices = 4;
	ok(verdict_decide(&torch).code == CODE_WORKER_FAILED, "a pass that ignores --expect-devices is not believed");
	make(&python, WORKER_PYTHON, SHAPE_PASS, 0);
	python.result.torch_device_count = 0;
	torch.expect_devices = 1;
	ok(verdict_decide(&torch).code == CODE_GPU_CHECK_PASSED, "torch under MIG counts 0 and computes: one device");
}

static void test_refinement(void)
{
	static struct sample python, native;

	make(&python, WORKER_PYTHON, SHAPE_RUNTIME_ERROR, 0);
	make(&native, WORKER_NATIVE, SHAPE_GPU_UNAVAILABLE, 0);
	native.result.have_error_number = true;
	native.result.error_number = 46;
	struct verdict_input input = {.torch_rule = TORCH_REQUIRED,
	                              .expect_devices = -1,
	                              .has_loader = true,
	                              .python = &python.outcome,
	                              .native = &native.outcome,
	                              .native_count = 1};
	struct verdict verdict = verdict_decide(&input);
	ok(verdict.code == CODE_GPU_UNAVAILABLE && verdict.stage == STAGE_DEVICE && verdict.detail.error_number == 46,
	   "a bare error of torch's first allocation is the driver's: the card is held");
	python.result.have_error_number = true;
	python.result.error_number = 214;
	verdict = verdict_decide(&input);
	ok(verdict.code == CODE_RUNTIME_ERROR && verdict.detail.error_number == 214, "torch's own number stays");
}

static void test_backend(void)
{
	static struct sample python;

	make(&python, WORKER_PYTHON, SHAPE_PASS, 0);
	python.result.torch_backend[0] = '\0';
	struct verdict_input input = {.torch_rule = TORCH_REQUIRED, .expect_devices = -1, .python = &python.outcome};
	ok(verdict_decide(&input).code == CODE_WORKER_FAILED, "right numbers of no backend are no pass");
	make(&python, WORKER_PYTHON, SHAPE_EXEC_FAILED, 0);
	python.outcome.error_number = EAGAIN;
	ok(verdict_decide(&input).code == CODE_WORKER_FAILED, "too many processes are no fault of the interpreter");
}

static void test_loader(void)
{
	struct verdict_input input = {.python = &absent, .expect_devices = -1};
	struct verdict verdict = verdict_decide(&input);

	ok(verdict.code == CODE_GPU_BACKEND_ABSENT && verdict.stage == STAGE_BACKEND, "no loader: no backend");
	ok(has_hint(&verdict, HINT_NO_LOADER), "no-loader says why");
	input.has_loader = true;
	ok(verdict_decide(&input).code == CODE_WORKER_FAILED, "no worker at all is never a pass");
	input.device = DEVICE_CPU;
	ok(verdict_decide(&input).code == CODE_WORKER_FAILED, "nor on the CPU");
}

int main(void)
{
	test_space();
	test_stages();
	test_devices();
	test_refinement();
	test_backend();
	test_loader();
	return done();
}
