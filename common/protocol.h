/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names of the control protocol, Varlink over the daemon's own Unix socket, as
 * common/org.xentraced.Control.varlink and docs/control-protocol.md describe them. Shared by
 * daemon/ and ctl/.
 */

#define CONTROL_INTERFACE "org.xentraced.Control"

/* Parameters of an error. */
#define FIELD_SENTENCE "sentence"
#define FIELD_HINT     "hint"

/* The interface that every Varlink service has, and its errors. */
#define SERVICE_INTERFACE             "org.varlink.service"
#define SERVICE_GET_INFO              "GetInfo"
#define SERVICE_GET_DESCRIPTION       "GetInterfaceDescription"
#define SERVICE_ERROR_PREFIX          SERVICE_INTERFACE "."
#define SERVICE_ERROR_NO_INTERFACE    SERVICE_ERROR_PREFIX "InterfaceNotFound"    /* interface */
#define SERVICE_ERROR_NO_METHOD       SERVICE_ERROR_PREFIX "MethodNotFound"       /* method */
#define SERVICE_ERROR_NOT_IMPLEMENTED SERVICE_ERROR_PREFIX "MethodNotImplemented" /* method */
#define SERVICE_ERROR_PARAMETER       SERVICE_ERROR_PREFIX "InvalidParameter"     /* parameter */
#define SERVICE_ERROR_PERMISSION      SERVICE_ERROR_PREFIX "PermissionDenied"
#define SERVICE_ERROR_EXPECTED_MORE   SERVICE_ERROR_PREFIX "ExpectedMore"

/* The flight recorder's session: Start(RECORDER) without options starts it again. */
#define PROTOCOL_RECORDER "flight-recorder"

/* Methods. */
#define PROTOCOL_START         "Start"
#define PROTOCOL_STOP          "Stop"
#define PROTOCOL_STOP_RECORDER "StopRecorder"
#define PROTOCOL_ABORT         "Abort"
#define PROTOCOL_STATUS        "Status"
#define PROTOCOL_SNAPSHOT      "Snapshot"
#define PROTOCOL_ROTATE        "Rotate"
#define PROTOCOL_TRIGGER       "Trigger"
#define PROTOCOL_FILES         "Files"
#define PROTOCOL_VACUUM        "Vacuum"
#define PROTOCOL_REMOVE        "Remove"
#define PROTOCOL_RELOAD        "Reload"

/* Parameters of replies: documents. */
#define REPLY_SESSION  "session"
#define REPLY_RECORDER "recorder"
#define REPLY_STATUS   "status"
#define REPLY_SNAPSHOT "snapshot"
#define REPLY_PROGRESS "progress"
#define REPLY_SEGMENT  "segment"
#define REPLY_TRIGGER  "trigger"
#define REPLY_FILES    "files"
#define REPLY_CHANGES  "changes"

/* Parameters of several calls. */
#define FIELD_NAME     "name"          /* of a session, a snapshot or a trigger */
#define FIELD_NAMES    "names"         /* of traces */
#define FIELD_INTERVAL "interval_usec" /* of replies that continue */

/* Parameters of Start. */
#define FIELD_EVENTS         "events" /* event list, as typed */
#define FIELD_CPUS           "cpus"   /* CPU list, as typed */
#define FIELD_TIME           "time_usec"
#define FIELD_RESERVE        "reserve_bytes"
#define FIELD_MAX_SIZE       "max_size_bytes"
#define FIELD_BUFFER_PAGES   "buffer_pages"
#define FIELD_POLL           "poll_usec"
#define FIELD_DISCARD        "discard"
#define FIELD_KEEP_ENABLED   "keep_enabled"
#define FIELD_START_DISABLED "start_disabled"
#define FIELD_ATTACHED       "attached"    /* ends when this client goes away */
#define FIELD_OUTPUT_FD      "output_fd"   /* a file (truncated by the client) or a pipe */
#define FIELD_OUTPUT_PATH    "output_path" /* absolute; for messages and the sidecar only */
#define FIELD_SIDECAR_FD     "sidecar_fd"
#define FIELD_MEMORY         "memory_bytes"       /* a ring of that size, written out at the end */
#define FIELD_MAX_AGE        "max_age_usec"       /* of a ring's records */
#define FIELD_SEGMENT_SIZE   "segment_size_bytes" /* a disk ring: numbered files of that size */
#define FIELD_SEGMENT_TIME   "segment_time_usec"  /* ... of that time */
#define FIELD_KEEP_FILES     "keep_files"         /* ... and at most that many */
#define FIELD_KEEP_SIZE      "keep_size_bytes"    /* ... and at most that size in total */
#define FIELD_ON_RESERVE     "on_reserve"         /* "stop", "rotate", "pause" */
#define FIELD_PERSIST        "persist"            /* continues after a restart of the daemon */
#define FIELD_COMPRESS       "compress"           /* "zstd", "no" */

/* Parameters of Snapshot; those of the output are as in Start. */
#define FIELD_SESSION   "session"        /* its ring; default: the flight recorder */
#define FIELD_LAST      "last_usec"      /* the newest part, by time */
#define FIELD_SINCE     "since_ns"       /* or from that moment on, since 1970 */
#define FIELD_UNTIL     "until_ns"       /* up to that moment */
#define FIELD_UNTIL_AGO "until_ago_usec" /* or up to that long before the request */
#define FIELD_LABEL     "label"          /* who asks, for the file's name and the sidecar */
/* and FIELD_MAX_SIZE: the newest part, by size; FIELD_COMPRESS */

/* Parameters of Vacuum. */
#define FIELD_MAX_USE   "max_use_bytes"   /* of the files that may be removed */
#define FIELD_KEEP_FREE "keep_free_bytes" /* of the file system */
/* and FIELD_MAX_AGE: of the files */
#define FIELD_DRY_RUN "dry_run" /* removes nothing */

/* Errors. Each comes with a sentence that says what happened, and what to do. */
#define ERROR_PREFIX            CONTROL_INTERFACE "."
#define ERROR_INVALID           ERROR_PREFIX "InvalidArgument" /* an option's value */
#define ERROR_NOT_PERMITTED     ERROR_PREFIX "NotPermitted"    /* peer may not do this */
#define ERROR_NAME_IN_USE       ERROR_PREFIX "NameInUse"       /* Start: session or file exists */
#define ERROR_BUSY              ERROR_PREFIX "Busy"            /* too many at once */
#define ERROR_LIMIT             ERROR_PREFIX "LimitReached"  /* Snapshot: of one who is not root */
#define ERROR_NO_SESSION        ERROR_PREFIX "NoSuchSession" /* Stop, Status */
#define ERROR_NO_SPACE          ERROR_PREFIX "NoSpace"       /* Start: reserve already crossed */
#define ERROR_OUTPUT            ERROR_PREFIX "Output"        /* Start: cannot be written */
#define ERROR_WAITING           ERROR_PREFIX "OutputWaiting" /* Start: the disk did not answer */
#define ERROR_XEN               ERROR_PREFIX "Xen"           /* the hypervisor refused */
#define ERROR_NO_CONTROL_DOMAIN ERROR_PREFIX "NoControlDomain" /* of the daemon's start only */
#define ERROR_CONFIG            ERROR_PREFIX "Configuration"   /* Reload: nothing changed */
#define ERROR_BUFFER_SIZE       ERROR_PREFIX "BufferSize"    /* -S differs from the size in force */
#define ERROR_NO_MEMORY         ERROR_PREFIX "NoMemory"      /* pool exhausted */
#define ERROR_NO_FILE           ERROR_PREFIX "NoSuchFile"    /* Remove */
#define ERROR_NO_TRIGGER        ERROR_PREFIX "NoSuchTrigger" /* Trigger */
#define ERROR_NO_RING           ERROR_PREFIX "NoRing"   /* Snapshot: nothing records into memory */
#define ERROR_RECORDER          ERROR_PREFIX "Recorder" /* Stop, Abort: of the flight recorder */
#define ERROR_EMPTY             ERROR_PREFIX "Empty"    /* Snapshot: no record yet */
#define ERROR_NOT_SEGMENTED     ERROR_PREFIX "NotSegmented" /* Rotate: the capture is one file */
#define ERROR_SHUTTING_DOWN     ERROR_PREFIX "ShuttingDown" /* the daemon is ending */
