/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The interface of the control socket, for GetInterfaceDescription: the text of
 * common/org.xentraced.Control.varlink.
 */

extern const char interface_text[];

/* Likewise org.varlink.service, as the specification has it. */
extern const char interface_service_text[];
