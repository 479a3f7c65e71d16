// SPDX-License-Identifier: GPL-2.0-or-later
#include "export/buffer.h"

#include "common/write-all.h"

int export_buffer_flush(struct export_buffer *buffer)
{
    if (buffer->error == 0)
        buffer->error = write_all(buffer->fd, buffer->bytes, buffer->used);
    if (buffer->error == 0)
        buffer->written += buffer->used;
    buffer->used = 0;
    return buffer->error;
}
