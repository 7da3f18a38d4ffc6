// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * run_law - the laws in BPF, one event per run, for tests only.
 *
 * Hook: syscall, run by BPF_PROG_RUN with a struct step that it works on; process context. What the verifier forced: the
 * context itself must not be handed to functions, so the step is copied to a global and back; it is too large for the stack.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "laws.h"

enum step_kind {
	STEP_INIT,
	STEP_ACKED,
	STEP_LOST,
	STEP_TIMED_OUT,
	STEP_SENT,
	STEP_UNDONE,
	STEP_NOTIFIED,
	STEP_REPORTED,
	STEP_SAMPLED,
	STEP_RESUMED,
};

/* tests/laws.rs mirrors it. */
struct step {
	__u32 kind;
	struct lh_window window;
	union {
		struct lh_start start;
		struct lh_acked acked;
		struct lh_lost lost;
		struct lh_sent sent;
		struct lh_undone undone;
		struct lh_report report;
		struct lh_rate_sample sample;
	};
	struct lh_steering steering;
	union lh_parameters parameters;
	struct lh_law law;
};

static struct step copy;

static __always_inline int run(struct step *context, __u32 name)
{
	struct step *step = &copy;

	__builtin_memcpy(step, context, sizeof(*step));
	/* the compiler drops what the other laws would do */
	step->law.name = name;
	switch (step->kind) {
	case STEP_INIT:
		lh_law_init(&step->law, name, &step->parameters, &step->start);
		break;
	case STEP_ACKED:
		lh_law_acked(&step->law, &step->parameters, &step->acked, &step->window);
		break;
	case STEP_LOST:
		lh_law_lost(&step->law, &step->parameters, &step->lost, &step->window);
		break;
	case STEP_TIMED_OUT:
		lh_law_timed_out(&step->law, &step->parameters, &step->lost, &step->window);
		break;
	case STEP_SENT:
		lh_law_sent(&step->law, &step->sent);
		break;
	case STEP_UNDONE:
		lh_law_undone(&step->law, &step->undone, &step->window);
		break;
	case STEP_NOTIFIED:
		lh_law_notified(&step->law, &step->parameters, &step->lost, &step->window);
		break;
	case STEP_REPORTED:
		lh_law_reported(&step->law, &step->parameters, &step->report, &step->window);
		break;
	case STEP_SAMPLED:
		lh_law_sampled(&step->law, &step->parameters, &step->sample, &step->steering);
		break;
	case STEP_RESUMED:
		lh_law_resumed(&step->law, &step->parameters, &step->sample, &step->steering);
		break;
	}
	__builtin_memcpy(context, step, sizeof(*step));
	return 0;
}

SEC("syscall")
int run_newreno(struct step *step)
{
	return run(step, LH_NEWRENO);
}

SEC("syscall")
int run_cubic(struct step *step)
{
	return run(step, LH_CUBIC);
}

SEC("syscall")
int run_cubic_rfc9438(struct step *step)
{
	return run(step, LH_CUBIC_RFC9438);
}

SEC("syscall")
int run_hd(struct step *step)
{
	return run(step, LH_HD);
}

SEC("syscall")
int run_chd(struct step *step)
{
	return run(step, LH_CHD);
}

SEC("syscall")
int run_cdg(struct step *step)
{
	return run(step, LH_CDG);
}

SEC("syscall")
int run_cdg_linux(struct step *step)
{
	return run(step, LH_CDG_LINUX);
}

SEC("syscall")
int run_ucc(struct step *step)
{
	return run(step, LH_UCC);
}

SEC("syscall")
int run_lastlink(struct step *step)
{
	return run(step, LH_LASTLINK);
}

SEC("syscall")
int run_bbr(struct step *step)
{
	return run(step, LH_BBR);
}

SEC("syscall")
int run_vegas(struct step *step)
{
	return run(step, LH_VEGAS);
}

SEC("syscall")
int run_westwood(struct step *step)
{
	return run(step, LH_WESTWOOD);
}

SEC("syscall")
int run_ledbat_pp(struct step *step)
{
	return run(step, LH_LEDBAT_PP);
}

SEC("syscall")
int run_copa(struct step *step)
{
	return run(step, LH_COPA);
}

SEC("syscall")
int run_bbr3(struct step *step)
{
	return run(step, LH_BBR3);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
