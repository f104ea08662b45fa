#include "verdict.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The fixed computation of CONTRACT.md 1, exact in float32. */
static const float PRODUCT[4] = {4, 4, 10, 8}, LOSS = 196, GRADIENT[4] = {16, 24, 40, 52};

/* What one worker alone amounts to. */
struct finding {
	bool passed;
	bool wrong_numbers;
	bool absent; /* it was not asked, or had no say: neither a pass nor a failure */
	enum code code;
	enum stage stage;
	struct detail detail;
	enum hint extra; /* HINT_COUNT: none */
};

static float as_float(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* Exactly equal as numbers; a NaN never is. */
static bool differs(const uint32_t *observed, const float *expected, int count, struct detail *detail)
{
	for (int i = 0; i < count; i++) {
		float value = as_float(observed[i]);
		if (value == expected[i])
			continue;
		(void)snprintf(detail->expected, sizeof detail->expected, "%.9g", (double)expected[i]);
		/* The sign of a NaN says nothing and printf would show it. */
		(void)snprintf(detail->observed, sizeof detail->observed, "%.9g",
		               isnan(value) ? (double)NAN : (double)value);
		return true;
	}
	return false;
}

static struct finding nothing(void)
{
	return (struct finding){
	        .absent = true, .code = CODE_WORKER_FAILED, .stage = STAGE_BACKEND, .extra = HINT_COUNT};
}

/* A failure is never told as `complete`: what comes last is synchronising and copying back. */
static struct finding failure(enum code code, enum stage stage)
{
	return (struct finding){.code = code,
	                        .stage = stage == STAGE_COMPLETE ? STAGE_SYNCHRONIZATION : stage,
	                        .detail = {.have = true, .elapsed_ms = -1},
	                        .extra = HINT_COUNT};
}

static struct finding wrong(enum stage stage, const struct detail *detail)
{
	struct finding finding = failure(CODE_CHECK_FAILED, stage);

	finding.wrong_numbers = true;
	memcpy(finding.detail.expected, detail->expected, sizeof detail->expected);
	memcpy(finding.detail.observed, detail->observed, sizeof detail->observed);
	return finding;
}

/* The numbers of one device: wrong ones count even when the worker failed or died later on. */
static struct finding judge_numbers(const struct computation *computation)
{
	struct detail detail = {0};

	if (computation->have_product && differs(computation->product, PRODUCT, 4, &detail))
		return wrong(STAGE_PRODUCT, &detail);
	if (computation->have_loss && differs(&computation->loss, &LOSS, 1, &detail))
		return wrong(STAGE_GRADIENT, &detail);
	if (computation->have_gradient && differs(computation->gradient, GRADIENT, 4, &detail))
		return wrong(STAGE_GRADIENT, &detail);
	return (struct finding){.passed = computation->have_product && computation->have_loss &&
	                                  computation->have_gradient};
}

static void fill_detail(struct detail *detail, const struct result *result)
{
	detail->call = result->call;
	detail->error_name = result->error_name;
	detail->missing = result->missing;
	detail->have_error_number = result->have_error_number;
	detail->error_number = result->error_number;
	detail->have_during = result->have_during;
	detail->during = result->during;
}

/* A worker that did not live to say what it found. */
static struct finding judge_death(const struct outcome *outcome)
{
	const struct result *result = outcome->result;
	struct finding finding = failure(CODE_WORKER_FAILED, result->stage);

	if (outcome->fate == FATE_TIMEOUT || outcome->fate == FATE_NO_TURN) {
		finding.code = CODE_TIMEOUT;
		finding.detail.elapsed_ms = outcome->elapsed_ms;
		finding.detail.unkillable = outcome->unkillable;
		return finding;
	}
	finding.detail.signal = outcome->fate == FATE_SIGNALED ? outcome->signal : 0;
	/* Not one line of the probe ran: the interpreter itself does not start. */
	if (result->kind == WORKER_PYTHON && result->total == 0)
		finding.code = CODE_INTERPRETER_FAILED;
	return finding;
}

static struct finding judge_start(const struct outcome *outcome)
{
	bool is_python = outcome->result->kind == WORKER_PYTHON;
	struct finding finding = failure(CODE_SANDBOX_FAILED, STAGE_SANDBOX);

	/* Too many processes, too little memory or too large an environment say nothing of the interpreter. */
	bool is_machine = outcome->error_number == EAGAIN || outcome->error_number == ENOMEM ||
	                  outcome->error_number == E2BIG || outcome->error_number == EMFILE ||
	                  outcome->error_number == ENFILE;
	if (outcome->fate == FATE_EXEC_FAILED) {
		finding.code = is_python && !is_machine ? CODE_INTERPRETER_FAILED : CODE_WORKER_FAILED;
		finding.stage = is_python ? STAGE_INTERPRETER : STAGE_BACKEND;
	}
	finding.detail.call = outcome->call;
	finding.detail.have_error_number = true;
	finding.detail.error_number = outcome->error_number;
	return finding;
}

static struct finding judge(const struct outcome *outcome, int index, int expect)
{
	const struct result *result = outcome->result;

	if (outcome->fate == FATE_NOT_STARTED)
		return nothing();
	if (outcome->fate == FATE_SANDBOX_FAILED || outcome->fate == FATE_EXEC_FAILED)
		return judge_start(outcome);
	bool complete =
	        outcome->fate == FATE_EXITED && outcome->exit_status == 0 && result->ended && !result->malformed;
	int passed = 0;
	for (int i = 0; i < result->computation_count; i++) {
		struct finding numbers = judge_numbers(&result->computations[i]);
		if (numbers.wrong_numbers)
			return numbers;
		passed += numbers.passed && (index == OPTIONS_INDEX_ALL ? result->computations[i].device == i
		                                                        : result->computations[i].device == index);
	}
	if (!complete)
		return judge_death(outcome);
	if (result->failed) {
		struct finding finding = failure(result->code, result->stage);
		fill_detail(&finding.detail, result);
		return finding;
	}
	/* It says that all went well: then every number must be here, for every device that was asked. */
	int count = result->kind == WORKER_PYTHON ? result->torch_device_count : result->device_count;
	/* An older PyTorch counts 0 under MIG and computes all the same (FIELD-NOTES 9). */
	if (result->kind == WORKER_PYTHON && count == 0)
		count = 1;
	int wanted = index == OPTIONS_INDEX_ALL ? count : 1;
	const char *backend = result->kind == WORKER_PYTHON ? result->torch_backend : result->backend;
	bool has_backend = index == RESULT_CPU || strcmp(backend, "cuda") == 0 || strcmp(backend, "hip") == 0;
	if (passed != wanted || passed != result->computation_count || passed < 1 || !has_backend ||
	    (expect != OPTIONS_EXPECT_OFF && count != expect))
		return failure(CODE_WORKER_FAILED, result->stage);
	return (struct finding){.passed = true, .stage = STAGE_COMPLETE, .extra = HINT_COUNT};
}

static bool is_worse(const struct finding *one, const struct finding *other)
{
	if (one->absent || other->absent)
		return !one->absent;
	if (one->passed || other->passed)
		return !one->passed && other->passed;
	if (one->wrong_numbers != other->wrong_numbers)
		return one->wrong_numbers;
	return one->stage < other->stage;
}

/* Of several native workers: wrong numbers before all else, then the earliest layer, then the lowest index. */
static struct finding judge_native(const struct verdict_input *input, const struct outcome **by)
{
	struct finding worst = nothing();

	*by = NULL;
	if (!input->has_loader && input->native_count == 0 && input->device == DEVICE_GPU) {
		worst = failure(CODE_GPU_BACKEND_ABSENT, STAGE_BACKEND);
		worst.extra = HINT_NO_LOADER;
		return worst;
	}
	bool all = input->device == DEVICE_GPU && input->device_index == OPTIONS_INDEX_ALL;
	for (int i = 0; i < input->native_count; i++) {
		int index = input->device == DEVICE_CPU                ? RESULT_CPU
		            : input->device_index == OPTIONS_INDEX_ALL ? i
		                                                       : input->device_index;
		struct finding finding = judge(&input->native[i], index, input->expect_devices);
		if (!is_worse(&finding, &worst))
			continue;
		worst = finding;
		*by = &input->native[i];
	}
	/* "all" passes only when every device that the driver counts had its own worker. */
	if (all && worst.passed && input->native[0].result->device_count != input->native_count)
		return failure(CODE_WORKER_FAILED, STAGE_DEVICE);
	return worst;
}

/* A loader, library, symbol or code image that is missing natively says nothing against a torch that computed. */
static bool is_missing_natively(const struct finding *native, const struct outcome *by)
{
	if (native->code == CODE_GPU_BACKEND_ABSENT || (by && by->fate == FATE_EXEC_FAILED))
		return true;
	for (int i = 0; by && i < by->result->hint_count; i++)
		if (by->result->hints[i] == HINT_NO_KERNEL_IMAGE || by->result->hints[i] == HINT_JIT_LIBRARY_MISSING ||
		    by->result->hints[i] == HINT_PTX_NEWER_THAN_DRIVER)
			return true;
	return false;
}

void verdict_add_hint(struct verdict *verdict, enum hint hint)
{
	for (int i = 0; i < verdict->hint_count; i++)
		if (verdict->hints[i] == hint)
			return;
	if (verdict->hint_count < VERDICT_HINTS_MAX)
		verdict->hints[verdict->hint_count++] = hint;
}

static void add_hints_of(struct verdict *verdict, const struct outcome *outcome)
{
	for (int i = 0; outcome && outcome->result && i < outcome->result->hint_count; i++)
		verdict_add_hint(verdict, (enum hint)outcome->result->hints[i]);
}

/* What was verified, from the deciding worker: every computation it made must hold. */
static void fill_execution(struct verdict *verdict, const struct outcome *by)
{
	verdict->by = by;
	if (!by || !by->result || by->result->computation_count == 0)
		return;
	const struct result *result = by->result;
	const struct computation *last = &result->computations[result->computation_count - 1];
	verdict->product_verified = verdict->gradient_verified = true;
	for (int i = 0; i < result->computation_count; i++) {
		const struct computation *one = &result->computations[i];
		struct detail ignored;
		verdict->product_verified &= one->have_product && !differs(one->product, PRODUCT, 4, &ignored);
		verdict->gradient_verified &= one->have_loss && !differs(&one->loss, &LOSS, 1, &ignored) &&
		                              one->have_gradient && !differs(one->gradient, GRADIENT, 4, &ignored);
	}
	verdict->have_loss = last->have_loss;
	verdict->loss = as_float(last->loss);
}

static void conclude(struct verdict *verdict, const struct finding *finding, const struct outcome *by,
                     const struct verdict_input *input)
{
	/* Only `passed` is a pass, whatever else a finding holds. */
	if (finding->passed)
		verdict->code = input->device == DEVICE_CPU ? CODE_CPU_CHECK_PASSED : CODE_GPU_CHECK_PASSED;
	else
		verdict->code = code_is_pass(finding->code) ? CODE_WORKER_FAILED : finding->code;
	verdict->stage = finding->stage;
	verdict->detail = finding->detail;
	add_hints_of(verdict, by);
	if (finding->extra != HINT_COUNT)
		verdict_add_hint(verdict, finding->extra);
	fill_execution(verdict, by);
}

/* A failure that PyTorch reports at the GPU gets the driver's own call and error name, where the driver failed too. */
static void refine(struct verdict *verdict, const struct finding *native, const struct outcome *by, bool is_gpu)
{
	bool at_gpu = verdict->code == CODE_GPU_UNAVAILABLE || verdict->code == CODE_OUT_OF_MEMORY ||
	              verdict->code == CODE_RUNTIME_ERROR || verdict->code == CODE_WORKER_FAILED;

	if (native->passed) {
		/* Slow is not broken, a full card is nobody's bug, and who sends SIGKILL is not the package. */
		bool elsewhere = verdict->code == CODE_TIMEOUT || verdict->code == CODE_OUT_OF_MEMORY ||
		                 verdict->detail.signal == SIGKILL;
		if (is_gpu && verdict->stage >= STAGE_IMPORT && !elsewhere)
			verdict_add_hint(verdict, HINT_FAULT_IN_PACKAGE);
		return;
	}
	if (native->absent || !at_gpu || verdict->stage < STAGE_BACKEND)
		return;
	add_hints_of(verdict, by);
	if (!native->detail.have_error_number || verdict->detail.have_error_number)
		return;
	/* PyTorch meets a card that is held or refused only when it first allocates, and then says no more than
	 * "error". */
	if (verdict->code == CODE_RUNTIME_ERROR && verdict->stage == STAGE_ALLOCATION &&
	    native->code == CODE_GPU_UNAVAILABLE) {
		verdict->code = native->code;
		verdict->stage = native->stage;
	}
	verdict->detail.call = native->detail.call;
	verdict->detail.error_name = native->detail.error_name;
	verdict->detail.have_error_number = true;
	verdict->detail.error_number = native->detail.error_number;
}

static enum stage furthest_stage(const struct verdict_input *input)
{
	enum stage stage = STAGE_SANDBOX;

	if (input->python->fate != FATE_NOT_STARTED)
		return input->python->result->stage;
	for (int i = 0; i < input->native_count; i++)
		if (input->native[i].fate != FATE_NOT_STARTED && input->native[i].result->stage > stage)
			stage = input->native[i].result->stage;
	return stage;
}

static bool torch_is_missing(const struct finding *python)
{
	return !python->passed && !python->absent && python->code == CODE_TORCH_MISSING;
}

struct verdict verdict_decide(const struct verdict_input *input)
{
	struct verdict verdict = {.code = CODE_WORKER_FAILED, .detail = {.elapsed_ms = -1}};
	const struct outcome *native_by;
	int torch_index = input->device == DEVICE_CPU ? RESULT_CPU : input->device_index;
	struct finding native = judge_native(input, &native_by);
	struct finding python = judge(input->python, torch_index, input->expect_devices);

	verdict.torch_checked = input->torch_rule == TORCH_REQUIRED ||
	                        (input->torch_rule == TORCH_IF_PRESENT && !python.absent && !torch_is_missing(&python));
	if (input->interrupted_by) {
		verdict.code = CODE_INTERRUPTED;
		verdict.stage = furthest_stage(input);
		verdict.signal = input->interrupted_by;
		verdict.detail = (struct detail){.have = true, .signal = input->interrupted_by, .elapsed_ms = -1};
		return verdict;
	}
	if (native.wrong_numbers || (!native.absent && !native.passed && native.code == CODE_SANDBOX_FAILED) ||
	    !verdict.torch_checked || input->python->fate == FATE_NO_TURN) {
		conclude(&verdict, &native, native_by, input);
		return verdict;
	}
	conclude(&verdict, &python, input->python, input);
	if (verdict.code == CODE_GPU_BACKEND_ABSENT)
		verdict_add_hint(&verdict, HINT_CPU_ONLY_PACKAGE);
	if (!python.passed)
		refine(&verdict, &native, native_by, input->device == DEVICE_GPU);
	else if (!native.passed && !native.absent && !is_missing_natively(&native, native_by))
		verdict_add_hint(&verdict, HINT_NATIVE_DISAGREES);
	return verdict;
}

enum code verdict_of_device(const struct outcome *outcome, int device)
{
	struct finding finding = judge(outcome, device, OPTIONS_EXPECT_OFF);

	return finding.absent ? CODE_COUNT : finding.passed ? CODE_GPU_CHECK_PASSED : finding.code;
}
