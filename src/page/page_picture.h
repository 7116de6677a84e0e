/* SPDX-License-Identifier: MIT */
/*
 * The picture of a sentence in the page's JSON, of a model that reads pictures:
 *
 *      "picture": {"side": 28, "channels": 1, "patch": 4, "stride": 4, "across": 7, "marks": 0,
 *                  "reads": "mean", "bytes": "AAEC..."},
 *      "probabilities": [0.01, 0.9, ...]
 *
 * The model reads side x side pixels; "bytes" is base64 of [channels][side][side], before they are
 * scaled to numbers. A patch has patch x patch of them and begins `stride` pixels after the one
 * before it; there are across x across, row by row, after the tokens that are marks. "reads" says
 * what a class is read from: the row of the first mark ("class"), or the mean of all rows ("mean").
 * Probabilities are those of the classes; only a classifier has them.
 */
#ifndef PAGE_PICTURE_H
#define PAGE_PICTURE_H

#include "format/json_writer.h"
#include "heads/subject.h"

/* They write nothing if there is nothing to write; false: out of memory. */
bool page_picture_put(json *j, const subject_picture *picture);
void page_probabilities_put(json *j, const capture *heads);

/* "boxes": [{"left": 0.1, "top": 0.2, "width": 0.3, "height": 0.3, "score": 0.98}, ...] of the
 * queries of a detector, as shares of the sides of the picture. */
void page_boxes_put(json *j, const subject_text *text);

#endif
