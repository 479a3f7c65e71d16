# SPDX-License-Identifier: GPL-2.0-or-later
# KernelShark's plug-in, where KernelShark looks for those that have a name only. As the shared library, it
# is not made with the sanitizers.

if HAVE_KERNELSHARK
kernelsharkdir = $(libdir)/kernelshark/plugins
kernelshark_LTLIBRARIES = kernelshark/plugin-xentrace.la
kernelshark_plugin_xentrace_la_CFLAGS = -std=gnu17 $(WARN_CFLAGS) $(SHARED_CFLAGS)
kernelshark_plugin_xentrace_la_SOURCES = kernelshark/plugin-xentrace.c \
	kernelshark/reader.c kernelshark/reader.h
kernelshark_plugin_xentrace_la_LIBADD = libxentrace.la -lkshark
kernelshark_plugin_xentrace_la_LDFLAGS = -module -avoid-version $(SHARED_LDFLAGS) \
	-export-symbols-regex '^kshark_input_'
endif
