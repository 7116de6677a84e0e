/* SPDX-License-Identifier: MIT */
/* The page without its data: cmake/view_template.cmake makes it from src/view/. */
#ifndef CLI_VIEW_TEMPLATE_H
#define CLI_VIEW_TEMPLATE_H

/* What stands before the data and behind it. */
extern const unsigned char view_template_head[], view_template_tail[];

#endif
