// SPDX-License-Identifier: GPL-2.0-or-later
/* common/local.mk makes a string of the interface's file. */

#include "common/interface.h"

const char interface_text[] =
#include "common/interface.inc"
    ;

/* https://varlink.org/Service */
const char interface_service_text[] =
    "# The interface that every Varlink service has.\n"
    "interface org.varlink.service\n"
    "\n"
    "# Describes the service, and names its interfaces.\n"
    "method GetInfo() -> (\n"
    "  vendor: string,\n"
    "  product: string,\n"
    "  version: string,\n"
    "  url: string,\n"
    "  interfaces: []string\n"
    ")\n"
    "\n"
    "# The description of an interface.\n"
    "method GetInterfaceDescription(interface: string) -> (description: string)\n"
    "\n"
    "# The interface is not there.\n"
    "error InterfaceNotFound(interface: string)\n"
    "\n"
    "# The method is not there.\n"
    "error MethodNotFound(method: string)\n"
    "\n"
    "# The method is there, but does nothing yet.\n"
    "error MethodNotImplemented(method: string)\n"
    "\n"
    "# A parameter is unknown, missing, or has another type or value than it may have.\n"
    "error InvalidParameter(parameter: string)\n"
    "\n"
    "# The client may not do this.\n"
    "error PermissionDenied()\n"
    "\n"
    "# The method has to be called with \"more\".\n"
    "error ExpectedMore()\n";
