/* Acts like Synheart Core's runtime. It takes the five crypto callbacks from the table, in the table's order, and the three storage
 * functions by name. It opens its storage, registers and signs. Then it does the same as the next launch.
 *   runtime            with the platform's own keys and storage
 *   runtime host       with those of a host, which is installed before the first use */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synheart_auth.h"

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);         \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

/* The table of callbacks, as the runtime declares it. */
typedef struct {
    char *(*generate_key)(const char *);
    char *(*sign_bytes)(const char *, const uint8_t *, intptr_t);
    char *(*get_attestation)(const char *, const uint8_t *, intptr_t);
    int32_t (*key_exists)(const char *);
    int32_t (*delete_key)(const char *);
} runtime_callbacks;

static const char *const DEVICE = "8f14e45f-ceea-4672-a3c1-0d5e1f8b1c11";

/* A host with one key and one secret. It counts its calls. */
static struct {
    int calls, has_key;
    char secret[64];
} state;

static char *host_generate(void *context, const char *device) {
    CHECK(context == &state && strcmp(device, DEVICE) == 0);
    state.calls++;
    state.has_key = 1;
    return strdup("{\"x\":\"AA\",\"y\":\"BB\"}");
}
static char *host_sign(void *context, const char *device, const uint8_t *data, intptr_t length) {
    CHECK(context == &state && device && data && length == 3);
    state.calls++;
    return state.has_key ? strdup("c2lnbmF0dXJl") : NULL;
}
static char *host_attest(void *context, const char *device, const uint8_t *hash, intptr_t length) {
    CHECK(context == &state && device && hash && length == 32);
    state.calls++;
    return strdup("{\"format\":\"play-integrity\",\"blob\":\"dG9rZW4=\",\"more\":[1]}");
}
static int32_t host_exists(void *context, const char *device) { return context == &state && device && state.has_key; }
static int32_t host_delete(void *context, const char *device) {
    CHECK(context == &state && device);
    state.has_key = 0;
    return 0;
}
static int32_t host_store(void *context, const char *service, const char *key, const char *value) {
    CHECK(context == &state && strcmp(service, "consent_tokens") == 0 && strcmp(key, "user") == 0);
    snprintf(state.secret, sizeof state.secret, "%s", value);
    return 0;
}
static char *host_load(void *context, const char *service, const char *key) {
    CHECK(context == &state && service && key);
    return state.secret[0] ? strdup(state.secret) : NULL;
}
static int32_t host_remove(void *context, const char *service, const char *key) {
    CHECK(context == &state && service && key);
    state.secret[0] = 0;
    return 0;
}

static void launch(const runtime_callbacks *crypto, int isFirst) {
    /* 1: the storage, before anything else. An absent value is NULL. */
    char *secret = synheart_native_secure_load("consent_tokens", "user");
    CHECK(isFirst ? secret == NULL : secret != NULL && strcmp(secret, "v1") == 0);
    free(secret);
    /* 2: registration. A retried call gets the same key. */
    CHECK(crypto->key_exists(DEVICE) == !isFirst);
    char *key = crypto->generate_key(DEVICE), *again = crypto->generate_key(DEVICE);
    CHECK(key && again && strstr(key, "\"x\":\"") && strstr(key, "\"y\":\"") && strcmp(key, again) == 0);
    free(key);
    free(again);
    uint8_t hash[32] = {1};
    char *attestation = crypto->get_attestation(DEVICE, hash, sizeof hash);
    CHECK(attestation && strstr(attestation, "\"format\":\"") && strstr(attestation, "\"blob\":\""));
    free(attestation);
    char *signature = crypto->sign_bytes(DEVICE, (const uint8_t *)"abc", 3);
    CHECK(signature && strlen(signature) > 0 && !strchr(signature, '=') && !strchr(signature, '+'));
    free(signature);
    /* 3: stored values. */
    CHECK(synheart_native_secure_store("consent_tokens", "user", "v1") == 0);
}

int main(int count, char **arguments) {
    int hasHost = count > 1 && strcmp(arguments[1], "host") == 0;
    synheart_native_host host = {1,           &state,      host_generate, host_sign, host_attest,
                                 host_exists, host_delete, host_store,    host_load, host_remove};
    if (hasHost) {
        synheart_native_host unknown = host, partial = host;
        unknown.version = 2;
        partial.secure_load = NULL;
        CHECK(synheart_native_install_host(NULL) && synheart_native_install_host(&unknown));
        CHECK(synheart_native_install_host(&partial));
        CHECK(synheart_native_install_host(&host) == 0);
    }
    runtime_callbacks crypto;
    CHECK(sizeof crypto == sizeof(synheart_native_callbacks));
    memcpy(&crypto, synheart_native_callback_table(), sizeof crypto);
    launch(&crypto, 1);
    /* A host cannot be installed after the first use, or after another host. */
    CHECK(synheart_native_install_host(&host) != 0);
    launch(&crypto, 0);
    if (hasHost) {
        /* The host's result of an attestation is passed on unchanged. */
        uint8_t hash[32] = {1};
        char *attestation = crypto.get_attestation(DEVICE, hash, sizeof hash);
        CHECK(strcmp(attestation, "{\"format\":\"play-integrity\",\"blob\":\"dG9rZW4=\",\"more\":[1]}") == 0);
        free(attestation);
        CHECK(state.calls >= 8);
    }
    /* 4: the user leaves. Deleting an absent value succeeds. */
    for (int time = 0; time < 2; time++) {
        CHECK(crypto.delete_key(DEVICE) == 0);
        CHECK(synheart_native_secure_delete("consent_tokens", "user") == 0);
    }
    CHECK(crypto.key_exists(DEVICE) == 0 && synheart_native_secure_load("consent_tokens", "user") == NULL);
    puts("ok");
    return 0;
}
