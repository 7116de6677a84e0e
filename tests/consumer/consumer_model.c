/* SPDX-License-Identifier: MIT */
/* Uses libmha_model as a stranger's program does: opens the model that is named, or says why not.
 */
#include <mha/mha_model.h>

#include <stdio.h>
#include <string.h>

static int open_model(const char *path)
{
    char message[200] = "";
    mha_model_config config;
    mha_model_info info;
    mha_model *model;
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.message = message;
    config.message_size = sizeof message;
    if (mha_model_open(&model, path, &config) != MHA_OK) {
        puts(message);
        return 1;
    }
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    mha_model_get_info(model, &info);
    printf("%s: %lld parameters\n", info.family, (long long)info.parameters);
    mha_model_free(model);
    return 0;
}

int main(int argc, char **argv)
{
    int families = 0;
    while (mha_model_family_at(families))
        families++;
    if (families < 10 || open_model("/nowhere") != 1)
        return 1;
    return argc > 1 ? open_model(argv[1]) : 0;
}
