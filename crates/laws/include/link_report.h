/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* link_report.h - a client's report of its last link, and the TCP option that carries it. */
#ifndef LASTHOP_LAWS_LINK_REPORT_H
#define LASTHOP_LAWS_LINK_REPORT_H

#include "law.h"

/* error_ppm: unknown */
#define LH_ERROR_UNKNOWN 0xffffffffU

/* The heuristics of lastlink.h that a server permits a connection. */
enum lh_permit {
	LH_PERMIT_MAX = 1, /* Max Cwnd Tuning */
	LH_PERMIT_INITIAL = 2, /* Initial Cwnd & SSThresh Tuning; not after lost segments of the handshake */
	LH_PERMIT_ERRORS = 4, /* the packet error rate heuristic */
	LH_PERMIT_ALL = 7,
};

/* A claim of a client; lastlink.h says how far it is trusted. */
struct lh_report {
	__u64 now_us; /* when it arrived */
	__u32 bandwidth_kbps; /* of the last link, IP bytes; 0: unknown */
	__u32 error_ppm; /* packet error rate of the last link; LH_ERROR_UNKNOWN: unknown */
	__u32 valid_s; /* validity, from now_us on */
	__u32 segment_bytes; /* payload of a full segment of this connection: L_segment of [wu] */
	__u32 rtt_us; /* smoothed RTT, so far that of the handshake; 0: none yet (TCP Fast Open) */
	__u32 segments_sent; /* data segments so far; 0: the initial window can still be set */
	__u32 permitted; /* enum lh_permit */
	__u32 reserved; /* 0 */
};

/*
 * The TCP option of a report (RFC 6994; docs/models/link-report.md):
 *
 *	 0               1               2               3
 *	+---------------+---------------+---------------+---------------+
 *	|   kind 253    |   length 10   |           ExID 0x6c68         |
 *	+-------+-------+-------+-------+---------------+---------------+
 *	|version| flags |   0   | valid |           bandwidth           |
 *	+-------+-------+-------+-------+---------------+---------------+
 *	|          error rate           |
 *	+-------------------------------+
 *
 * A later version may be longer: octets after the tenth are ignored.
 */
#define LH_REPORT_KIND 253 /* RFC 4727: for experiments */
#define LH_REPORT_EXID 0x6c68 /* "lh"; not registered with IANA */
#define LH_REPORT_OCTETS 10
#define LH_REPORT_VERSION 1
#define LH_REPORT_UNKNOWN 0xffff /* unknown, in both 16-bit numbers */
#define LH_REPORT_VALID_MAX_S 32768

enum lh_report_flag {
	LH_REPORT_ANSWER = 1, /* from a server that knows this option */
	LH_REPORT_RESEND = 2, /* with ANSWER: the server kept nothing of the SYN, and asks for another report */
};

enum lh_report_outcome {
	LH_REPORT_GOOD = 0,
	LH_REPORT_NOT_OURS = 1, /* another option, or another experiment */
	LH_REPORT_MALFORMED = 2, /* too short, or with an impossible value */
	LH_REPORT_OTHER_VERSION = 3,
};

/* [mantissa, 11 bits | exponent, 5 bits]: mantissa << exponent, the least exponent; rounds down by less than 1/1024. */
static inline __u16 lh_report_pack(__u32 value)
{
	__u32 exponent = 0;

	while (value >= 1 << 11) {
		value >>= 1;
		exponent++;
	}
	return value << 5 | exponent;
}

/* Unpacks `packed`. Returns whether the number fits into 32 bits; not for LH_REPORT_UNKNOWN. */
static inline int lh_report_unpack(__u16 packed, __u32 *value)
{
	__u64 wide = (__u64)(packed >> 5) << (packed & 31);

	*value = wide;
	return wide == *value;
}

/* The flags of an option that parsed as GOOD. */
static inline __u32 lh_report_flags(const __u8 *option)
{
	return option[4] & 0xf;
}

/* Its validity from its arrival on, likewise. */
static inline __u32 lh_report_valid_s(const __u8 *option)
{
	return 1U << (option[5] & 0xf);
}

/*
 * Reads the first `length` octets of an option, which may be fewer than its length field says. Sets the client's values
 * in `report`, and only if the option is GOOD.
 */
static inline enum lh_report_outcome lh_report_parse(const __u8 *option, __u32 length, struct lh_report *report)
{
	__u32 bandwidth_kbps = 0, error_ppm = LH_ERROR_UNKNOWN;
	__u16 packed;

	if (length < 4 || option[0] != LH_REPORT_KIND || option[2] != LH_REPORT_EXID >> 8 ||
	    option[3] != (LH_REPORT_EXID & 0xff))
		return LH_REPORT_NOT_OURS;
	if (length < 5 || option[1] < 5)
		return LH_REPORT_MALFORMED;
	if (option[4] >> 4 != LH_REPORT_VERSION)
		return LH_REPORT_OTHER_VERSION;
	if (length < LH_REPORT_OCTETS || option[1] < LH_REPORT_OCTETS)
		return LH_REPORT_MALFORMED;
	packed = option[6] << 8 | option[7];
	if (packed != LH_REPORT_UNKNOWN && (!lh_report_unpack(packed, &bandwidth_kbps) || !bandwidth_kbps))
		return LH_REPORT_MALFORMED;
	packed = option[8] << 8 | option[9];
	if (packed != LH_REPORT_UNKNOWN && (!lh_report_unpack(packed, &error_ppm) || error_ppm > 1000000))
		return LH_REPORT_MALFORMED;
	report->bandwidth_kbps = bandwidth_kbps;
	report->error_ppm = error_ppm;
	report->valid_s = lh_report_valid_s(option);
	return LH_REPORT_GOOD;
}

/* Writes LH_REPORT_OCTETS octets: bandwidth_kbps, error_ppm, and the largest power of two up to valid_s, 1 to 32768. */
static inline void lh_report_write(__u8 *option, const struct lh_report *report, __u32 flags)
{
	__u16 bandwidth = LH_REPORT_UNKNOWN, error = LH_REPORT_UNKNOWN;
	__u32 valid = 0;

	if (report->bandwidth_kbps)
		bandwidth = lh_report_pack(report->bandwidth_kbps);
	if (report->error_ppm != LH_ERROR_UNKNOWN)
		error = lh_report_pack(lh_min(report->error_ppm, 1000000));
	while (valid < 15 && report->valid_s >> (valid + 1))
		valid++;
	option[0] = LH_REPORT_KIND;
	option[1] = LH_REPORT_OCTETS;
	option[2] = LH_REPORT_EXID >> 8;
	option[3] = LH_REPORT_EXID & 0xff;
	option[4] = LH_REPORT_VERSION << 4 | flags;
	option[5] = valid;
	option[6] = bandwidth >> 8;
	option[7] = bandwidth & 0xff;
	option[8] = error >> 8;
	option[9] = error & 0xff;
}

#endif /* LASTHOP_LAWS_LINK_REPORT_H */
