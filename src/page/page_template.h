/* SPDX-License-Identifier: MIT */
/* The page without its data, made from src/page/web/ by cmake/page_template.cmake. */
#ifndef PAGE_TEMPLATE_H
#define PAGE_TEMPLATE_H

/* The text before the data and after it, each with a 0 at its end. Bytes, because compilers limit
 * the length of strings. */
extern const unsigned char page_template_head[], page_template_tail[];

/* The script of the Worker that runs the model of a page (web/worker.js with js/host.mjs). */
extern const unsigned char page_template_worker[];

/* src/page/lecture.txt and lecture_pictures.txt, each with a 0 at its end. */
extern const unsigned char page_lecture_text[], page_lecture_pictures_text[];

#endif
