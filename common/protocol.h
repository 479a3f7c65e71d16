/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names of the control protocol, which docs/control-protocol.md describes: D-Bus messages over
 * the daemon's own Unix socket, without a bus daemon. Shared by daemon/ and ctl/.
 */

#define PROTOCOL_PATH      "/org/xentraced"
#define PROTOCOL_INTERFACE "org.xentraced.Control1"

/* The same over Varlink, whose interface is common/org.xentraced.Control.varlink: its methods are
 * PROTOCOL_*, its errors ERROR_* after this prefix. */
#define CONTROL_INTERFACE    "org.xentraced.Control"
#define CONTROL_ERROR_PREFIX CONTROL_INTERFACE "."

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

/* Start(s name, a{sv} options) -> (s json): the session's document */
#define PROTOCOL_START "Start"
/* Stop(s name) -> (s json): answered when the file is finished */
#define PROTOCOL_STOP "Stop"
/* StopRecorder() -> (s json): the recorder's object, when it has ended; root only */
#define PROTOCOL_STOP_RECORDER "StopRecorder"
/* Abort(s name) -> (s json): ends a session at once, without waiting for its disk */
#define PROTOCOL_ABORT "Abort"
/* Status(s name) -> (s json): "" is everything */
#define PROTOCOL_STATUS "Status"
/* Snapshot(s name, a{sv} options) -> (s json): a ring's content as a file; answered when it is on
 * the disk */
#define PROTOCOL_SNAPSHOT "Snapshot"
/* Rotate(s name) -> (s json): closes the segment being written; answered when it is finished */
#define PROTOCOL_ROTATE "Rotate"
/* Trigger(s name) -> (s json): fires a trigger whose condition is `manual` */
#define PROTOCOL_TRIGGER "Trigger"
/* Files() -> (s json): the traces in the state directory */
#define PROTOCOL_FILES "Files"
/* Vacuum(a{sv} options) -> (s json): removes the oldest files, to keep limits */
#define PROTOCOL_VACUUM "Vacuum"
/* Remove(as names) -> (s json): removes these files */
#define PROTOCOL_REMOVE "Remove"
/* Reload() -> (s json): reads the configuration again; what has changed. Root only */
#define PROTOCOL_RELOAD "Reload"
/* Property s: the daemon's version */
#define PROTOCOL_VERSION "Version"

/* Parameters of calls, as the interface has them. */
#define FIELD_NAME           "name"
#define FIELD_EVENTS         "events"
#define FIELD_CPUS           "cpus"
#define FIELD_TIME           "time_usec"
#define FIELD_RESERVE        "reserve_bytes"
#define FIELD_MAX_SIZE       "max_size_bytes"
#define FIELD_BUFFER_PAGES   "buffer_pages"
#define FIELD_POLL           "poll_usec"
#define FIELD_DISCARD        "discard"
#define FIELD_KEEP_ENABLED   "keep_enabled"
#define FIELD_START_DISABLED "start_disabled"
#define FIELD_ATTACHED       "attached"
#define FIELD_OUTPUT_FD      "output_fd"
#define FIELD_OUTPUT_PATH    "output_path"
#define FIELD_SIDECAR_FD     "sidecar_fd"
#define FIELD_MEMORY         "memory_bytes"
#define FIELD_MAX_AGE        "max_age_usec"
#define FIELD_SEGMENT_SIZE   "segment_size_bytes"
#define FIELD_SEGMENT_TIME   "segment_time_usec"
#define FIELD_KEEP_FILES     "keep_files"
#define FIELD_KEEP_SIZE      "keep_size_bytes"
#define FIELD_ON_RESERVE     "on_reserve"
#define FIELD_PERSIST        "persist"
#define FIELD_COMPRESS       "compress"
#define FIELD_SESSION        "session"
#define FIELD_LAST           "last_usec"
#define FIELD_SINCE          "since_ns"
#define FIELD_UNTIL          "until_ns"
#define FIELD_UNTIL_AGO      "until_ago_usec"
#define FIELD_LABEL          "label"
#define FIELD_MAX_USE        "max_use_bytes"
#define FIELD_KEEP_FREE      "keep_free_bytes"
#define FIELD_DRY_RUN        "dry_run"
#define FIELD_INTERVAL       "interval_usec"
#define FIELD_NAMES          "names"

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
#define OPTION_MEMORY         "memory-bytes"   /* t  a ring of that size, written out at the end */
#define OPTION_MAX_AGE        "max-age-usec"   /* t  of a ring's records */
#define OPTION_SEGMENT_SIZE   "segment-size-bytes" /* t  a disk ring: numbered files of that size */
#define OPTION_SEGMENT_TIME   "segment-time-usec"  /* t  ... of that time */
#define OPTION_KEEP_FILES     "keep-files"         /* u  ... and at most that many */
#define OPTION_KEEP_SIZE      "keep-size-bytes"    /* t  ... and at most that size in total */
#define OPTION_ON_RESERVE     "on-reserve"         /* s  "stop", "rotate", "pause" */
#define OPTION_PERSIST        "persist"            /* b  continues after a restart of the daemon */
#define OPTION_COMPRESS       "compress"           /* s  "zstd", "no" */

/* Keys of Snapshot's options; output, output-path and sidecar are as in Start. */
#define OPTION_SESSION   "session"        /* s  its ring; default: the flight recorder */
#define OPTION_LAST      "last-usec"      /* t  the newest part, by time */
#define OPTION_SINCE     "since-ns"       /* t  or from that moment on, since 1970 */
#define OPTION_UNTIL     "until-ns"       /* t  up to that moment */
#define OPTION_UNTIL_AGO "until-ago-usec" /* t  or up to that long before the request */
#define OPTION_LABEL     "label"          /* s  who asks, for the file's name and the sidecar */
/* and OPTION_MAX_SIZE: the newest part, by size; OPTION_COMPRESS */

/* Keys of Vacuum's options. */
#define OPTION_MAX_USE   "max-use-bytes"   /* t  of the files that may be removed */
#define OPTION_KEEP_FREE "keep-free-bytes" /* t  of the file system */
#define OPTION_FILE_AGE  "max-age-usec"    /* t  of the files */
#define OPTION_DRY_RUN   "dry-run"         /* b  removes nothing */

/* Errors. Each comes with one sentence that says what happened and what to do. */
#define ERROR_PREFIX            "org.xentraced.Error."
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
