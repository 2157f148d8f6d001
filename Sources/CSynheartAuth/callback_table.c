#include "synheart_auth.h"

/* Synheart Core's runtime looks these functions up by name at run time, so nothing refers to them when a program is linked.
 * `used` keeps them through the compiler and, on Apple's systems, through -dead_strip; `retain` does so through --gc-sections of
 * ELF linkers. A linker includes this file from an archive because the Swift code refers to synheart_native_callback_table. */
#ifdef __has_attribute
#if __has_attribute(retain)
#define KEPT __attribute__((used, retain, visibility("default")))
#endif
#endif
#ifndef KEPT
#define KEPT __attribute__((used, visibility("default")))
#endif

/* The implementations in Swift, in Sources/SynheartAuth/Runtime. */
char *synheart_native_swift_generate_key(const char *device_id);
char *synheart_native_swift_sign_bytes(const char *device_id, const uint8_t *data, intptr_t len);
char *synheart_native_swift_get_attestation(const char *device_id, const uint8_t *challenge_hash, intptr_t len);
int32_t synheart_native_swift_key_exists(const char *device_id);
int32_t synheart_native_swift_delete_key(const char *device_id);
int32_t synheart_native_swift_secure_store(const char *service, const char *key, const char *value);
char *synheart_native_swift_secure_load(const char *service, const char *key);
int32_t synheart_native_swift_secure_delete(const char *service, const char *key);

KEPT char *synheart_native_generate_key(const char *device_id) { return synheart_native_swift_generate_key(device_id); }

KEPT char *synheart_native_sign_bytes(const char *device_id, const uint8_t *data, intptr_t len) {
    return synheart_native_swift_sign_bytes(device_id, data, len);
}

KEPT char *synheart_native_get_attestation(const char *device_id, const uint8_t *challenge_hash, intptr_t len) {
    return synheart_native_swift_get_attestation(device_id, challenge_hash, len);
}

KEPT int32_t synheart_native_key_exists(const char *device_id) { return synheart_native_swift_key_exists(device_id); }

KEPT int32_t synheart_native_delete_key(const char *device_id) { return synheart_native_swift_delete_key(device_id); }

KEPT int32_t synheart_native_secure_store(const char *service, const char *key, const char *value) {
    return synheart_native_swift_secure_store(service, key, value);
}

KEPT char *synheart_native_secure_load(const char *service, const char *key) {
    return synheart_native_swift_secure_load(service, key);
}

KEPT int32_t synheart_native_secure_delete(const char *service, const char *key) {
    return synheart_native_swift_secure_delete(service, key);
}

static const synheart_native_callbacks table = {
    synheart_native_generate_key, synheart_native_sign_bytes, synheart_native_get_attestation,
    synheart_native_key_exists,   synheart_native_delete_key,
};

KEPT const synheart_native_callbacks *synheart_native_callback_table(void) { return &table; }
