/*
 * Synheart Auth: the C interface of the client SDK.
 *
 * Strings are UTF-8 and end with a zero byte. Functions may be called from any thread; they block until they are done, or their
 * deadline has passed, and must not be called from a callback. Nothing here ever aborts on bad input: a NULL or malformed argument is an error.
 */
#ifndef SYNHEART_AUTH_H
#define SYNHEART_AUTH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- 1. What Synheart Core's runtime looks up
 *
 * Keys live under synheart_device_{device_id} and never touch an identity of the SDK. Returned strings are malloc'd; the caller
 * frees them with free(). */

/* {"x":"<b64url>","y":"<b64url>"} of the P-256 key, which is loaded or made; NULL on failure. Threads and processes that call it
 * at once get the same key. */
char *synheart_native_generate_key(const char *device_id);
/* base64url(r || s) of the ECDSA signature over SHA-256(data); NULL on failure. */
char *synheart_native_sign_bytes(const char *device_id, const uint8_t *data, intptr_t len);
/* {"format":"apple-app-attest","blob":"<b64>"}, or {"format":"none","blob":"","reason":"..."}. challenge_hash has 32 bytes. Each
 * call makes an App Attest key of its own. */
char *synheart_native_get_attestation(const char *device_id, const uint8_t *challenge_hash, intptr_t len);
/* 0: there certainly is no key; 1: there is one, or the store cannot be read now. */
int32_t synheart_native_key_exists(const char *device_id);
/* 0: deleted, or there was none; any other number: failed. */
int32_t synheart_native_delete_key(const char *device_id);
/* Small secrets in the platform's secure storage. 0: stored; any other number: failed. */
int32_t synheart_native_secure_store(const char *service, const char *key, const char *value);
/* The value; NULL where there is none, or it cannot be read now. */
char *synheart_native_secure_load(const char *service, const char *key);
/* 0: deleted, or there was none; any other number: failed. */
int32_t synheart_native_secure_delete(const char *service, const char *key);

/* The callbacks as the runtime takes them, in its order. */
typedef struct synheart_native_callbacks {
    char *(*generate_key)(const char *device_id);
    char *(*sign_bytes)(const char *device_id, const uint8_t *data, intptr_t len);
    char *(*get_attestation)(const char *device_id, const uint8_t *challenge_hash, intptr_t len);
    int32_t (*key_exists)(const char *device_id);
    int32_t (*delete_key)(const char *device_id);
} synheart_native_callbacks;

/* A table that lives as long as the process. */
const synheart_native_callbacks *synheart_native_callback_table(void);

/* ---------------------------------------------------------------- 2. The whole SDK for hosts
 *
 * Every function returns 0 or one of the statuses below, and where it has a `result`, stores a JSON text there that the caller
 * frees with synheart_auth_string_free(): the result, or on failure
 *   {"code":"NETWORK_ERROR","class":"NetworkError","message":"...","recovery":"retry","retryable":true,"retry_after_ms":1000}
 */

typedef enum synheart_auth_status {
    SYNHEART_AUTH_OK = 0,
    SYNHEART_AUTH_NETWORK_ERROR = 1,
    SYNHEART_AUTH_CHALLENGE_EXPIRED = 2,
    SYNHEART_AUTH_ATTESTATION_UNAVAILABLE = 3,
    SYNHEART_AUTH_ATTESTATION_FAILED = 4,
    SYNHEART_AUTH_KEY_INVALIDATED = 5,
    SYNHEART_AUTH_KEYSTORE_ERROR = 6,
    SYNHEART_AUTH_SECURE_ENCLAVE_ERROR = 7,
    SYNHEART_AUTH_SIGNING_FAILED = 8,
    SYNHEART_AUTH_DEVICE_REVOKED = 9,
    SYNHEART_AUTH_CLOCK_SKEW = 10,
    SYNHEART_AUTH_ROTATION_FAILED = 11,
    SYNHEART_AUTH_NONCE_REPLAY = 12,
    SYNHEART_AUTH_ALREADY_REGISTERED = 13,
    SYNHEART_AUTH_NOT_REGISTERED = 14,
    SYNHEART_AUTH_NOT_CONFIGURED = 15,
    SYNHEART_AUTH_REGISTRATION_IN_PROGRESS = 16,
    SYNHEART_AUTH_CRYPTO_ERROR = 17,
    SYNHEART_AUTH_STORAGE_ERROR = 18,
    SYNHEART_AUTH_INVALID_STATE_TRANSITION = 19,
    SYNHEART_AUTH_SERVER_ERROR = 100, /* any other code of the service: see "code" in the result */
    SYNHEART_AUTH_INVALID_ARGUMENT = 101
} synheart_auth_status;

/* What a host's callback returns. */
typedef enum synheart_auth_host_status {
    SYNHEART_AUTH_HOST_OK = 0,
    SYNHEART_AUTH_HOST_NOT_FOUND = 1,   /* no such key, record or handle */
    SYNHEART_AUTH_HOST_INVALIDATED = 2, /* KeyPermanentlyInvalidatedException, UnrecoverableKeyException */
    SYNHEART_AUTH_HOST_UNAVAILABLE = 3, /* locked, busy, no network: later */
    SYNHEART_AUTH_HOST_UNSUPPORTED = 4, /* not on this device */
    SYNHEART_AUTH_HOST_REFUSED = 5,     /* the attestation provider says no */
    SYNHEART_AUTH_HOST_FAILED = 6
} synheart_auth_host_status;

/* The platform, as a host supplies it. A callback writes at most `capacity` bytes to `out` and their number to `length`. Callbacks
 * come from several threads, but never two at once for keys, for records, or for `attest`, unless one has hung.
 *
 * A callback that does not return within 30 seconds has hung: it fails its call and is left behind with its thread. It is not called
 * again until it has returned; the others are. A callback that changes something (create_key, delete_key, write_record,
 * remove_record) and hangs also keeps the identity's lock until it returns, so that its change meets no other one. `user` is passed
 * through; a callback that was left behind may still be running when the handle is freed, so `user` lives until `release` is
 * called. */
typedef struct synheart_auth_host {
    void *user;
    /* Keys: P-256. Public keys as X.509 SPKI DER or a 65-byte point; signatures as ASN.1 DER over SHA-256(message). */
    int32_t (*create_key)(void *user, const char *alias, const uint8_t *challenge, int64_t challenge_length, uint8_t *out,
                          int64_t capacity, int64_t *length);
    int32_t (*load_key)(void *user, const char *alias, uint8_t *out, int64_t capacity, int64_t *length);
    int32_t (*sign)(void *user, const char *alias, const uint8_t *message, int64_t message_length, uint8_t *out,
                    int64_t capacity, int64_t *length);
    int32_t (*delete_key)(void *user, const char *alias);
    /* Play Integrity and key attestation: {"proof":"...","key_attestation":["<b64 DER>", ...]}, either may be absent. `nonce` has 32
     * bytes; Play Integrity takes it as base64url without padding. */
    int32_t (*attest)(void *user, const char *alias, const uint8_t *challenge, int64_t challenge_length,
                      const uint8_t *nonce, uint8_t *out, int64_t capacity, int64_t *length);
    /* Secure storage, or all three NULL for files in `directory`; some of them NULL is SYNHEART_AUTH_INVALID_ARGUMENT. A write
     * replaces the record as a whole. */
    int32_t (*read_record)(void *user, const char *name, uint8_t *out, int64_t capacity, int64_t *length);
    int32_t (*write_record)(void *user, const char *name, const uint8_t *bytes, int64_t length);
    int32_t (*remove_record)(void *user, const char *name);
    /* May be NULL. Called once, on any thread, after the last of the other callbacks has come back: soon after synheart_auth_free()
     * as a rule, later where an operation runs on after its call's deadline; also where no instance was made. */
    void (*release)(void *user);
} synheart_auth_host;

typedef struct synheart_auth synheart_auth;

/* An instance for the service at base_url. `directory`: where records and locks live. It is made with mode 0700; one that belongs to
 * another user, or that others can enter, is refused. NULL: the platform's own place, but SYNHEART_AUTH_INVALID_ARGUMENT beside
 * storage callbacks, whose locks need a directory: the same one in all processes of the app. `host`: NULL for the platform's own
 * parts; it is copied. The handle is freed with synheart_auth_free(). */
int32_t synheart_auth_create(const char *base_url, const char *directory, const synheart_auth_host *host,
                             synheart_auth **handle, char **result);
/* The same with keys in files, which whoever reads them can copy: for desktops and tests, never for phones. */
int32_t synheart_auth_create_with_software_keys(const char *base_url, const char *directory, synheart_auth **handle,
                                                char **result);
/* Once every call with this handle has come back. */
void synheart_auth_free(synheart_auth *handle);
void synheart_auth_string_free(char *text);

/* How long every call from now on may take, except synheart_auth_send(), which has its own deadline: at most an hour, 0: 120 seconds.
 * It bounds the call as a whole, with its pauses, exchanges and callbacks. A call whose deadline passes returns
 * SYNHEART_AUTH_NETWORK_ERROR; a registration, rotation or reset that it began runs on, and the next call joins it or finds what
 * it did; {} */
int32_t synheart_auth_set_deadline(synheart_auth *handle, int64_t deadline_ms, char **result);

/* {"status":"registered|alreadyRegistered|pending","device_id":"..."} */
int32_t synheart_auth_register_device(synheart_auth *handle, const char *app_id, char **result);
/* {"registered":true} */
int32_t synheart_auth_is_registered(synheart_auth *handle, const char *app_id, char **result);
/* {"device_id":"..."} or {"device_id":null} */
int32_t synheart_auth_get_device_id(synheart_auth *handle, const char *app_id, char **result);
/* {"state":"registered"} */
int32_t synheart_auth_get_state(synheart_auth *handle, const char *app_id, char **result);
/* Scheme 1's six headers for a request to any host; {"headers":{"X-App-ID":"...", ...}} */
int32_t synheart_auth_sign_request(synheart_auth *handle, const char *app_id, const char *method, const char *path,
                                   const uint8_t *body, int64_t body_length, char **result);

/* A request to sign, or to sign and send. It is only read, and only during the call: what it points to stays the caller's. Zeros
 * mean none, or the usual. */
typedef struct synheart_auth_request {
    int32_t scheme;         /* 0 or 1: method, path, time and body are signed; 2 (RFC 9421): query, host and body digest as well */
    const char *method;     /* under scheme 1 put in upper case */
    const char *url;        /* absolute, escaped as it is sent; to the auth service, or an origin that was allowed */
    const char *headers;    /* NULL, or a JSON object of texts, {"Content-Type":"application/json"}: sent, not signed; not what the
                             * transport writes (Host, Content-Length, Transfer-Encoding, Connection, ...), nor the signature's */
    const uint8_t *body;    /* NULL with length 0: none */
    int64_t body_length;
    const char *body_file;  /* NULL, or under scheme 2 the path of a file that is the body, of any size; it must not change */
    int64_t deadline_ms;    /* of synheart_auth_send() as a whole, whatever it recovers from: at most an hour; 0: 30 seconds */
    int64_t maximum_answer; /* bytes that the answer's body may have; 0: 64 KiB */
} synheart_auth_request;

/* Requests to this origin, such as https://api.example.com, may be signed too: https, or this machine. Call it right after the
 * instance is made, as it begins anew what the instance keeps in memory; {} */
int32_t synheart_auth_allow_origin(synheart_auth *handle, const char *origin, char **result);
/* The headers to send this request with, whoever sends it; no network. Under scheme 2 the method's case counts. Of the request,
 * `headers`, `deadline_ms` and `maximum_answer` play no part; {"headers":{"X-App-ID":"...", ...}} */
int32_t synheart_auth_sign(synheart_auth *handle, const char *app_id, const synheart_auth_request *request, char **result);
/* Signs the request and sends it. Recovers once each from a clock that is off, a nonce that was seen, a key too old (rotates), a
 * key that is gone (registers) and a rotation whose answer was lost. All of that has one deadline: once it has passed, nothing is
 * sent any more, but a rotation or registration that was begun runs on. The host's callbacks may come while it waits: hold no lock
 * that they need. Any number of sends may be under way. Follows no redirects.
 *
 * 0 is returned where an answer came, whatever its status:
 *   {"status":200,"headers":[{"name":"Content-Type","value":"text/plain"}, ...]}
 * and its body, which the caller frees with synheart_auth_bytes_free(), in *answer and *answer_length: NULL and 0 where it is
 * empty, and on failure. Both may be NULL for a body that nobody wants. SYNHEART_AUTH_NETWORK_ERROR: no answer by the deadline; the
 * request may have arrived. SYNHEART_AUTH_DEVICE_REVOKED: the auth service says so; only synheart_auth_reset_device_identity() goes on. */
int32_t synheart_auth_send(synheart_auth *handle, const char *app_id, const synheart_auth_request *request, char **result,
                           uint8_t **answer, int64_t *answer_length);
void synheart_auth_bytes_free(uint8_t *bytes);

/* reason: "scheduled" or "compromise"; {"device_id":"...","effective_at":1700000000} */
int32_t synheart_auth_rotate_key(synheart_auth *handle, const char *app_id, const char *reason, char **result);
/* reason: "server_instructed", "user_requested" or "key_lost"; {} */
int32_t synheart_auth_reset_device_identity(synheart_auth *handle, const char *app_id, const char *reason,
                                            char **result);
/* A token that any backend can check offline, fetched, and renewed once half of its life is over. audience: one of the app's, or
 * NULL for the app itself; {"token":"...","remaining_seconds":600} */
int32_t synheart_auth_device_token(synheart_auth *handle, const char *app_id, const char *audience, char **result);
/* Finishes what an interrupted rotation left and rotates a key that is due; {}. synheart_auth_register_device() on a registered
 * device begins it by itself, in the background. */
int32_t synheart_auth_maintain(synheart_auth *handle, const char *app_id, char **result);
/* Unix seconds, as in a CLOCK_SKEW answer; {} */
int32_t synheart_auth_correct_clock_skew(synheart_auth *handle, const char *app_id, double server_timestamp,
                                         char **result);

#ifdef __cplusplus
}
#endif
#endif
