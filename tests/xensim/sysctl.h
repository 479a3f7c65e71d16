/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The hypercalls: what Xen answers to a sysctl, and who may ask.
 */

#ifndef __XEN_TOOLS__
#define __XEN_TOOLS__ 1 /* as <xenctrl.h> does */
#endif

#include "sim.h"

#include <xen/xen.h>
#include <xen/sysctl.h>

/* 0 or a negative errno, as the hypervisor would return. */
int sysctl_call(struct sim *sim, struct xen_sysctl *sysctl);

/* May this process open /dev/xen/...? 0, -ENOENT or -EACCES. */
int sysctl_may_open(const struct sim *sim);
