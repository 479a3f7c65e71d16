/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names of the control protocol, which docs/control-protocol.md describes: D-Bus messages over
 * the daemon's own Unix socket, without a bus daemon. Shared by daemon/ and ctl/.
 */

#define PROTOCOL_PATH      "/org/xentraced"
#define PROTOCOL_INTERFACE "org.xentraced.Control1"

/* Start(s name, a{sv} options) -> (s json): the session's document */
#define PROTOCOL_START "Start"
/* Stop(s name) -> (s json): answered when the file is finished */
#define PROTOCOL_STOP "Stop"
/* Status(s name) -> (s json): "" is everything */
#define PROTOCOL_STATUS "Status"
/* Property s: the daemon's version */
#define PROTOCOL_VERSION "Version"

/* Keys of Start's options. */
#define OPTION_EVENTS         "events"         /* s  event list, as typed */
#define OPTION_CPUS           "cpus"           /* s  CPU list, as typed */
#define OPTION_TIME           "time-usec"      /* t  */
#define OPTION_RESERVE        "reserve-bytes"  /* t  */
#define OPTION_MAX_SIZE       "max-size-bytes" /* t  */
#define OPTION_BUFFER_PAGES   "buffer-pages"   /* u  */
#define OPTION_POLL           "poll-usec"      /* t  */
#define OPTION_DISCARD        "discard"        /* b  */
#define OPTION_KEEP_ENABLED   "keep-enabled"   /* b  */
#define OPTION_START_DISABLED "start-disabled" /* b  */
#define OPTION_ATTACHED       "attached"       /* b  ends when this client goes away */
#define OPTION_OUTPUT         "output"         /* h  a file (truncated by the client) or a pipe */
#define OPTION_OUTPUT_PATH    "output-path"    /* s  absolute; for messages and the sidecar only */
#define OPTION_SIDECAR        "sidecar"        /* h  */

/* Errors. Each comes with one sentence that says what happened and what to do. */
#define ERROR_PREFIX        "org.xentraced.Error."
#define ERROR_INVALID       ERROR_PREFIX "InvalidArgument" /* an option's value */
#define ERROR_NOT_PERMITTED ERROR_PREFIX "NotPermitted"    /* peer may not do this */
#define ERROR_NAME_IN_USE   ERROR_PREFIX "NameInUse"       /* Start: session or file exists */
#define ERROR_BUSY          ERROR_PREFIX "Busy"            /* Start: another capture runs */
#define ERROR_NO_SESSION    ERROR_PREFIX "NoSuchSession"   /* Stop, Status */
#define ERROR_NO_SPACE      ERROR_PREFIX "NoSpace"         /* Start: reserve already crossed */
#define ERROR_OUTPUT        ERROR_PREFIX "Output"          /* Start: cannot be written */
#define ERROR_XEN           ERROR_PREFIX "Xen"             /* the hypervisor refused */
#define ERROR_BUFFER_SIZE   ERROR_PREFIX "BufferSize"      /* -S differs from the size in force */
#define ERROR_NO_MEMORY     ERROR_PREFIX "NoMemory"        /* pool exhausted */
#define ERROR_SHUTTING_DOWN ERROR_PREFIX "ShuttingDown"    /* the daemon is ending */
