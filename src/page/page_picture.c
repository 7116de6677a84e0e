/* SPDX-License-Identifier: MIT */
/* Writes a picture and what the model says of it (page_picture.h). */
#include "page/page_picture.h"

#include "page/page_weights.h"

bool page_picture_put(json *j, const subject_picture *p)
{
    if (p->across == 0)
        return true;
    json_open_object(j, "picture");
    json_integer(j, "side", p->side);
    json_integer(j, "channels", p->channels);
    json_integer(j, "patch", p->patch);
    json_integer(j, "stride", p->stride);
    json_integer(j, "across", p->across);
    json_integer(j, "marks", p->marks);
    json_string(j, "reads", p->marks > 0 ? "class" : "mean");
    const size_t size = (size_t)p->channels * (size_t)p->side * (size_t)p->side;
    const bool fine = page_put_text(j, "bytes", page_bytes_text(p->bytes, size));
    json_close(j);
    return fine;
}

void page_probabilities_put(json *j, const capture *heads)
{
    if (heads->class_count == 0)
        return;
    json_open_array(j, "probabilities");
    for (int n = 0; n < heads->class_count; n++)
        json_exact(j, NULL, heads->probabilities[n]);
    json_close(j);
}

void page_boxes_put(json *j, const subject_text *text)
{
    if (text->boxes == NULL)
        return;
    json_open_array(j, "boxes");
    for (int n = 0; n < text->target.count; n++) {
        const subject_box *const b = &text->boxes[n];
        json_open_object(j, NULL);
        json_number(j, "left", b->left);
        json_number(j, "top", b->top);
        json_number(j, "width", b->width);
        json_number(j, "height", b->height);
        json_number(j, "score", b->score);
        json_close(j);
    }
    json_close(j);
}
