/* Tests that the header is valid C, and that a program links and runs: cc smoke.c -lSynheartAuthC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synheart_auth.h"

int main(void) {
    if (strcmp(synheart_auth_version(), SYNHEART_AUTH_VERSION)) return 5;
    const synheart_native_callbacks *table = synheart_native_callback_table();
    char *key = table->generate_key("smoke");
    if (!key || !strstr(key, "\"x\":")) return 1;
    free(key);
    if (!table->key_exists("smoke") || table->delete_key("smoke") || table->key_exists("smoke")) return 2;
    synheart_auth *handle = NULL;
    char *result = NULL;
    if (synheart_auth_create("http://example.com", NULL, NULL, &handle, &result) != SYNHEART_AUTH_NOT_CONFIGURED)
        return 3;
    if (handle || !strstr(result, "NOT_CONFIGURED")) return 4;
    synheart_auth_string_free(result);
    synheart_auth_free(handle);
    puts("ok");
    return 0;
}
