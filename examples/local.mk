# SPDX-License-Identifier: GPL-2.0-or-later
# What a program that uses libxentrace looks like; compiled by `make check`.

check_PROGRAMS += examples/waits
examples_waits_SOURCES = examples/waits.c
examples_waits_CPPFLAGS = -I$(top_srcdir)/trace
examples_waits_LDADD = libxentrace.la
