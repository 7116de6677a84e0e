/* SPDX-License-Identifier: MIT */
/* Folders of models that read scenes, damaged: all must be refused, with a reason. */
#ifndef MHA_TEST_SCENE_FOLDER_H
#define MHA_TEST_SCENE_FOLDER_H

#include "vision/scene_model.h"

/* The first `old` in a file becomes `new`; then the folder is refused with `reason`. */
typedef struct folder_damage {
    const char *file, *old, *new, *reason;
} folder_damage;

/* Checks one damage after another; the folder is as before in the end. */
void scene_folder_damages(const scene_model_kind *kind, const char *folder,
                          const folder_damage *list, size_t count);

/* Weights that are cut off or infinite, and files that are missing. The folder, which must be of
 * F16, is of no use afterwards. */
void scene_folder_cuts(const scene_model_kind *kind, const char *folder);

/* Whatever single byte changes, the folder is refused, or `run` says something: `rounds` changes.
 * The folder is as before in the end. */
void scene_folder_bytes(const scene_model_kind *kind, const char *folder, int rounds,
                        void (*run)(const scene_model *model));

#endif
