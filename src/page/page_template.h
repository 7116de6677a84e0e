/* SPDX-License-Identifier: MIT */
/* The page without its data: cmake/page_template.cmake makes it from src/page/web/. */
#ifndef PAGE_TEMPLATE_H
#define PAGE_TEMPLATE_H

/* What stands before the data and behind it. */
extern const unsigned char page_template_head[], page_template_tail[];

#endif
