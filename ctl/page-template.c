// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The assembler takes in the file, from the build directory: the compiler need not read it, and a
 * page needs no file of ours when it is made.
 */

#include "ctl/page-template.h"

#include <assert.h>
#include <string.h>

#ifdef HAVE_PAGE

/* clang-format off */
__asm__(".section .rodata\n"
        ".globl xentraced_page_begin\n"
        ".globl xentraced_page_end\n"
        "xentraced_page_begin:\n"
        ".incbin \"page/template.html\"\n"
        "xentraced_page_end:\n"
        ".byte 0\n"
        ".text\n");
/* clang-format on */

extern const char xentraced_page_begin[], xentraced_page_end[];

#define MARK "@DATA@"

bool page_template_find(struct page_template *ret_template)
{
    size_t bytes = (size_t)(xentraced_page_end - xentraced_page_begin);
    const char *mark = memmem(xentraced_page_begin, bytes, MARK, strlen(MARK));

    assert(mark);
    assert(strncmp(xentraced_page_begin, PAGE_FIRST_LINES, strlen(PAGE_FIRST_LINES)) == 0);
    *ret_template = (struct page_template){
        .head = xentraced_page_begin,
        .head_bytes = (size_t)(mark - xentraced_page_begin),
        .tail = mark + strlen(MARK),
        .tail_bytes = (size_t)(xentraced_page_end - mark) - strlen(MARK),
    };
    return true;
}

#else

bool page_template_find(struct page_template *ret_template)
{
    (void)ret_template;
    return false;
}

#endif
