/*
 * Synheart Auth: the C interface of the client SDK.
 *
 * Strings are UTF-8 and end with a zero byte. Any thread may call a function. The call blocks until it is done or its deadline has
 * passed. A callback must not call any of these functions. Bad input never aborts: a NULL or malformed argument is an error.
 */
#ifndef SYNHEART_AUTH_H
#define SYNHEART_AUTH_H

#include <stdint.h>

/* The version of this header, by semantic versioning. */
#define SYNHEART_AUTH_VERSION "1.0.0"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library, in the form of SYNHEART_AUTH_VERSION. The two differ if the program runs with a
 * different version of the library from the one that it was compiled for. The text is valid for the life of the
 * process; do not free it. */
const char *synheart_auth_version(void);

/* ---------------------------------------------------------------- 1. The symbols that Synheart Core's runtime looks
 * up
 *
 * Keys are named synheart_device_{device_id}. They are separate from the keys of the SDK's identities. Returned
 * strings are malloc'd; the caller frees them with free(). */

/* Loads or makes the P-256 key: {"x":"<b64url>","y":"<b64url>"}; NULL on failure. Concurrent callers, in any process, get the
 * same key. */
char *synheart_native_generate_key(const char *device_id);
/* base64url(r || s) of the ECDSA signature over SHA-256(data); NULL on failure. */
char *synheart_native_sign_bytes(const char *device_id, const uint8_t *data, intptr_t len);
/* {"format":"apple-app-attest","blob":"<b64>"}, or {"format":"none","blob":"","reason":"..."}. challenge_hash has 32 bytes. Each
 * call makes a new App Attest key. */
char *synheart_native_get_attestation(const char *device_id, const uint8_t *challenge_hash, intptr_t len);
/* 0: the key certainly does not exist; 1: it exists, or the store cannot be read now. */
int32_t synheart_native_key_exists(const char *device_id);
/* 0: deleted, or absent; any other number: failed. */
int32_t synheart_native_delete_key(const char *device_id);
/* Stores a small secret in the platform's secure storage. 0: stored; any other number: failed. */
int32_t synheart_native_secure_store(const char *service, const char *key, const char *value);
/* The value; NULL if there is none, or if it cannot be read now. */
char *synheart_native_secure_load(const char *service, const char *key);
/* 0: deleted, or absent; any other number: failed. */
int32_t synheart_native_secure_delete(const char *service, const char *key);

/* A host's own implementations of the eight functions above. Each must do what the comment of its function says. The
 * SDK passes `context` as the first argument, and may call the functions from any thread. */
typedef struct synheart_native_host {
    uint32_t version; /* 1 */
    void *context;
    char *(*generate_key)(void *context, const char *device_id);
    char *(*sign_bytes)(void *context, const char *device_id, const uint8_t *data, intptr_t len);
    char *(*get_attestation)(void *context, const char *device_id, const uint8_t *challenge_hash, intptr_t len);
    int32_t (*key_exists)(void *context, const char *device_id);
    int32_t (*delete_key)(void *context, const char *device_id);
    int32_t (*secure_store)(void *context, const char *service, const char *key, const char *value);
    char *(*secure_load)(void *context, const char *service, const char *key);
    int32_t (*secure_delete)(void *context, const char *service, const char *key);
} synheart_native_host;

/* Installs the host. The table is copied. 0: installed. Any other number: one of the eight functions was used already, another host
 * is installed, the version is unknown, or a function is NULL. */
int32_t synheart_native_install_host(const synheart_native_host *host);

/* The callbacks, in the order that Synheart Core's runtime expects. */
typedef struct synheart_native_callbacks {
    char *(*generate_key)(const char *device_id);
    char *(*sign_bytes)(const char *device_id, const uint8_t *data, intptr_t len);
    char *(*get_attestation)(const char *device_id, const uint8_t *challenge_hash, intptr_t len);
    int32_t (*key_exists)(const char *device_id);
    int32_t (*delete_key)(const char *device_id);
} synheart_native_callbacks;

/* Returns the table of the five callbacks for Synheart Core's runtime. It is valid for the life of the process. */
const synheart_native_callbacks *synheart_native_callback_table(void);

/* ---------------------------------------------------------------- 2. The whole SDK for hosts
 *
 * Every function returns 0 or one of the statuses below. A function with a `result` stores a JSON text there, which the caller
 * frees with synheart_auth_string_free(): the object that the comment of the function shows, or on failure
 *   {"code":"NETWORK_ERROR","class":"NetworkError","message":"...","recovery":"retry","retryable":true,"retry_after_ms":1000,
 *    "may_have_happened":true}
 * "may_have_happened" is for synheart_auth_send(): false only if nothing was sent, or the service refused the request before it was
 * accepted. INVALID_STATE_TRANSITION also has "from" and "to". A body of 2 GiB or more is SYNHEART_AUTH_INVALID_ARGUMENT.
 *
 * If a process has called one of these functions and then forks, its child has none of the SDK's threads. In the child, the
 * functions return SYNHEART_AUTH_NOT_CONFIGURED. Fork before the first call, or call exec in the child.
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
    SYNHEART_AUTH_ANSWER_TOO_LARGE = 20, /* the request may have succeeded */
    SYNHEART_AUTH_CANCELLED = 21, /* by synheart_auth_cancel() */
    SYNHEART_AUTH_SERVER_ERROR = 100, /* any other code of the service: see "code" in the result */
    SYNHEART_AUTH_INVALID_ARGUMENT = 101
} synheart_auth_status;

/* A table of a host's functions begins with its version and its size, so that later versions can have more functions: set
 * `version` to 1 and `size` to sizeof the table. Any other version, and a smaller size, is SYNHEART_AUTH_INVALID_ARGUMENT; no
 * function of such a table is called, not even `release`. */

/* The result of a host's callback. If a key is NOT_FOUND, the SDK asks again, and believes only the second answer. */
typedef enum synheart_auth_host_status {
    SYNHEART_AUTH_HOST_OK = 0,
    SYNHEART_AUTH_HOST_NOT_FOUND = 1,   /* no such key, record or handle */
    SYNHEART_AUTH_HOST_INVALIDATED = 2, /* KeyPermanentlyInvalidatedException: one answer ends the key */
    SYNHEART_AUTH_HOST_UNAVAILABLE = 3, /* locked, busy, no network: try later */
    SYNHEART_AUTH_HOST_UNSUPPORTED = 4, /* not on this device */
    SYNHEART_AUTH_HOST_REFUSED = 5,     /* the attestation provider refused */
    SYNHEART_AUTH_HOST_FAILED = 6
} synheart_auth_host_status;

/* The host's platform. A callback writes at most `capacity` bytes to `out` and their number to `length`. The SDK calls back from
 * several threads, but makes one call at a time for keys, for records, and for `attest`, unless one hangs.
 *
 * If a callback has not returned after 30 seconds, the SDK abandons it and its thread, and fails the operation that called it. The
 * SDK calls this callback again only after it has returned, and continues to call the others. An abandoned change (create_key,
 * delete_key, write_record, remove_record) keeps the identity's lock until it returns, so that no other change runs concurrently.
 * The SDK passes `user` through. An abandoned callback may still run when the handle is freed, so `user` must stay valid until
 * `release` is called. */
typedef struct synheart_auth_host {
    uint32_t version; /* 1 */
    uint32_t size;    /* sizeof(synheart_auth_host) */
    void *user;
    /* P-256 keys. Public keys as X.509 SPKI DER or a 65-byte point; signatures as ASN.1 DER over SHA-256(message). */
    int32_t (*create_key)(void *user, const char *alias, const uint8_t *challenge, int64_t challenge_length, uint8_t *out,
                          int64_t capacity, int64_t *length);
    int32_t (*load_key)(void *user, const char *alias, uint8_t *out, int64_t capacity, int64_t *length);
    int32_t (*sign)(void *user, const char *alias, const uint8_t *message, int64_t message_length, uint8_t *out,
                    int64_t capacity, int64_t *length);
    int32_t (*delete_key)(void *user, const char *alias);
    /* Play Integrity and key attestation: {"proof":"...","key_attestation":["<b64 DER>", ...]}, either one may be absent. `nonce`
     * has 32 bytes; Play Integrity takes it as base64url without padding. */
    int32_t (*attest)(void *user, const char *alias, const uint8_t *challenge, int64_t challenge_length,
                      const uint8_t *nonce, uint8_t *out, int64_t capacity, int64_t *length);
    /* Secure storage. All three NULL: files in `directory`. Only some NULL: SYNHEART_AUTH_INVALID_ARGUMENT. A write replaces the
     * complete record. */
    int32_t (*read_record)(void *user, const char *name, uint8_t *out, int64_t capacity, int64_t *length);
    int32_t (*write_record)(void *user, const char *name, const uint8_t *bytes, int64_t length);
    int32_t (*remove_record)(void *user, const char *name);
    /* May be NULL. Called once, on any thread, after the last of the other callbacks has returned: usually soon after
     * synheart_auth_free(), later if an operation continues after its call's deadline. Also called if no instance was created. */
    void (*release)(void *user);
} synheart_auth_host;

typedef struct synheart_auth synheart_auth;

/* Makes an instance for the service at base_url. Free the handle with synheart_auth_free().
 * `directory` has records and locks. The SDK creates it with mode 0700. If it belongs to another user, or others can enter it, the
 * SDK writes and locks nothing there: it can only read an existing record and sign with it. NULL means the platform's own
 * directory; with storage callbacks it is SYNHEART_AUTH_INVALID_ARGUMENT, because their locks need a directory that all processes
 * of the app share.
 * `host` is copied. NULL means the platform's own keys, attestation and storage. */
int32_t synheart_auth_create(const char *base_url, const char *directory, const synheart_auth_host *host,
                             synheart_auth **handle, char **result);
/* Makes an instance with keys in files. Any program that can read the files can copy the keys, so use it on
 * desktops and in tests, never on phones. With a debug build of the library, the instance registers in development
 * mode, with an app that allows this mode. With a release build, it cannot register. */
int32_t synheart_auth_create_with_software_keys(const char *base_url, const char *directory, synheart_auth **handle,
                                                char **result);
/* Frees the instance. Call it after all calls with this handle have returned. The process may exit at any time without it. */
void synheart_auth_free(synheart_auth *handle);
/* Frees the text that a function stored in `result`. NULL is allowed. */
void synheart_auth_string_free(char *text);

/* Development mode, for emulators and CI: the device registers without a vendor's proof, as "ios" or "android", with an app of
 * channel dev or staging that allows it. Only a debug build of the library has it; others return SYNHEART_AUTH_NOT_CONFIGURED. Call
 * it right after making the instance. Result: {} */
int32_t synheart_auth_use_development_mode(synheart_auth *handle, const char *platform, char **result);

/* A request for the host's own HTTP client. It is valid during the callback. */
typedef struct synheart_auth_http_request {
    const char *method;
    const char *url;
    const char *headers;    /* [{"name":"Content-Type","value":"application/json"}, ...]: send each, add only the transport's own */
    const uint8_t *body;    /* NULL with length 0: none, or body_file has it */
    int64_t body_length;
    const char *body_file;  /* NULL, or the path of a file to send as the body */
    int64_t deadline_ms;    /* the SDK does not wait longer */
    int64_t maximum_answer; /* the most bytes of the answer's body */
} synheart_auth_http_request;

typedef struct synheart_auth_http_answer synheart_auth_http_answer;

/* Gives the SDK the server's answer. Call it once, while `send` runs. The SDK copies everything. `headers` has the
 * form of the request's `headers`. Returns 0, or SYNHEART_AUTH_INVALID_ARGUMENT if something is malformed, there is
 * an answer already, or `send` has returned. A body of more than maximum_answer is not copied, and the request ends
 * with SYNHEART_AUTH_ANSWER_TOO_LARGE. */
int32_t synheart_auth_http_answer_set(synheart_auth_http_answer *answer, int32_t status, const char *headers,
                                      const uint8_t *body, int64_t body_length);

/* The host's HTTP client. `send` blocks until it has given an answer, and then returns SYNHEART_AUTH_HOST_OK. If
 * no answer came, it returns another status. It must follow no redirects, answer no password challenge, keep no
 * cookies and cache nothing. It must send a request only once: OkHttp, HttpURLConnection and libcurl repeat
 * requests unless configured otherwise.
 *
 * The SDK calls it on its own threads, at most 16 at once. While that many calls hang, later requests wait until
 * their deadlines, and are then not sent. `release` may be NULL; it is called once, after the last call, and also
 * if `send` is NULL. */
typedef struct synheart_auth_transport {
    uint32_t version; /* 1 */
    uint32_t size;    /* sizeof(synheart_auth_transport) */
    void *user;
    int32_t (*send)(void *user, const synheart_auth_http_request *request, synheart_auth_http_answer *answer);
    void (*release)(void *user);
} synheart_auth_transport;

/* Sends everything through the host's HTTP client. The table is copied. Call it right after making the instance. Result: {} */
int32_t synheart_auth_set_transport(synheart_auth *handle, const synheart_auth_transport *transport, char **result);

/* Receives events of the SDK. Each function may be NULL. They are called in order, one at a time, on a thread of the SDK. While a
 * function hangs, the SDK continues, and drops further calls after 1000 waiting ones. The texts are valid during the call.
 * `release` is called once, after the last call. */
typedef struct synheart_auth_observer {
    uint32_t version; /* 1 */
    uint32_t size;    /* sizeof(synheart_auth_observer) */
    void *user;
    /* {"level":"info","event":"rotationFinished","app_id":"...","device":"<16 hex digits of a hash>","code":"...","from":"...",
     * "to":"...","duration_ms":12}. A member that is not known is absent. No build logs a secret. */
    void (*log)(void *user, const char *entry);
    /* {"app_id":"...","from":"registered","to":"keyInvalid"} */
    void (*state_changed)(void *user, const char *change);
    void (*release)(void *user);
} synheart_auth_observer;

/* Installs the observer, in place of an earlier one. The table is copied. Call it right after making the instance. Result: {} */
int32_t synheart_auth_set_observer(synheart_auth *handle, const synheart_auth_observer *observer, char **result);

/* Ends the wait of every call under way with this handle, from any thread. The calls return SYNHEART_AUTH_CANCELLED with recovery
 * "retry". Operations that they began continue, and a later call joins them or finds their result. */
void synheart_auth_cancel(synheart_auth *handle);

/* Sets the deadline of every later call except synheart_auth_send(), which has its own. `deadline_ms` is at most
 * an hour; 0 means 120 seconds. The deadline bounds the whole call, with its pauses, exchanges and callbacks. A
 * call whose deadline passes returns SYNHEART_AUTH_NETWORK_ERROR. A registration, rotation or reset that it began
 * continues, and the next call joins it or finds its outcome. Result: {} */
int32_t synheart_auth_set_deadline(synheart_auth *handle, int64_t deadline_ms, char **result);

/* Result: {"status":"registered|alreadyRegistered|pending","device_id":"..."} */
int32_t synheart_auth_register_device(synheart_auth *handle, const char *app_id, char **result);
/* Result: {"registered":true} */
int32_t synheart_auth_is_registered(synheart_auth *handle, const char *app_id, char **result);
/* Result: {"device_id":"..."} or {"device_id":null} */
int32_t synheart_auth_get_device_id(synheart_auth *handle, const char *app_id, char **result);
/* Result: {"state":"registered"} */
int32_t synheart_auth_get_state(synheart_auth *handle, const char *app_id, char **result);
/* The six headers of scheme 1 for a request to any host. SYNHEART_AUTH_SIGNING_FAILED for a device that signs under scheme 2: call
 * synheart_auth_sign(). Result: {"headers":{"X-App-ID":"...", ...}} */
int32_t synheart_auth_sign_request(synheart_auth *handle, const char *app_id, const char *method, const char *path,
                                   const uint8_t *body, int64_t body_length, char **result);

/* A request to sign, or to sign and send. The SDK only reads it, and only during the call. Zero means none, or the default. */
typedef struct synheart_auth_request {
    int32_t scheme;         /* 0: the scheme that the device signs with, see synheart_auth_use_scheme(); any other is refused */
    const char *method;     /* scheme 1 converts it to upper case */
    const char *url;        /* absolute, escaped as sent; to the auth service or an allowed origin */
    const char *headers;    /* NULL, or a JSON object of texts, {"Content-Type":"application/json"}: sent, not signed; none of the
                             * transport's (Host, Content-Length, Transfer-Encoding, Connection, ...) or the signature's: refused */
    const uint8_t *body;    /* NULL with length 0: none */
    int64_t body_length;
    const char *body_file;  /* NULL, or under scheme 2 the path of a file to send as the body; it must not change */
    int64_t deadline_ms;    /* of the whole synheart_auth_send(), recoveries included: at most an hour; 0: 30 seconds */
    int64_t maximum_answer; /* the most bytes of the answer's body; 0: 4 MiB */
} synheart_auth_request;

/* Allows signing for another origin, such as https://api.example.com. The origin must use https, unless its host is
 * loopback, such as 127.0.0.1. Call this function right after making the instance, because it clears the instance's
 * caches. Result: {} */
int32_t synheart_auth_allow_origin(synheart_auth *handle, const char *origin, char **result);
/* Names an earlier origin of the service at base_url. After the service has moved to base_url, the SDK continues
 * to use the identities that were made at the earlier origin. Call it right after making the instance, once for
 * each earlier origin. Result: {} */
int32_t synheart_auth_allow_alias(synheart_auth *handle, const char *origin, char **result);
/* The scheme that the app signs with. Scheme 1, the default, covers method, path, time and body. Scheme 2 (RFC 9421) covers query and
 * host too, and the body by its digest. A device whose service has accepted scheme 2 signs under scheme 2 from then on. Call it right
 * after making the instance. Result: {} */
int32_t synheart_auth_use_scheme(synheart_auth *handle, int32_t scheme, char **result);
/* The signature headers of a request that the host sends itself; no network. Under scheme 2 the case of the method matters. The
 * request's `headers`, `deadline_ms` and `maximum_answer` are ignored. Result: {"headers":{"X-App-ID":"...", ...}} */
int32_t synheart_auth_sign(synheart_auth *handle, const char *app_id, const synheart_auth_request *request, char **result);
/* Signs the request and sends it. Recovers once from each of: a wrong clock, a key that is too old (rotates), a
 * lost key (registers), a demanded assertion, and a rotation whose answer was lost. A replayed nonce means that a
 * copy of the request was accepted. The SDK recovers from it, also once, only for GET, HEAD, OPTIONS, PUT, DELETE
 * and requests with Idempotency-Key. One deadline bounds the whole call. After it nothing is sent, but a rotation
 * or registration in progress continues. The SDK may call the host's callbacks during the call: hold no lock that
 * they need. Any number of sends may run at once. Follows no redirects.
 *
 * Returns 0 if an answer came, whatever its status:
 *   {"status":200,"headers":[{"name":"Content-Type","value":"text/plain"}, ...]}
 * and its body in *answer and *answer_length, which the caller frees with synheart_auth_bytes_free(): NULL and 0
 * for an empty body and on failure. Both pointers may be NULL. SYNHEART_AUTH_NETWORK_ERROR: no answer by the
 * deadline, but the request may have arrived. SYNHEART_AUTH_DEVICE_REVOKED: confirmed by the auth service; only
 * synheart_auth_reset_device_identity() helps. */
int32_t synheart_auth_send(synheart_auth *handle, const char *app_id, const synheart_auth_request *request, char **result,
                           uint8_t **answer, int64_t *answer_length);
/* Frees the body that synheart_auth_send() stored in `answer`. NULL is allowed. */
void synheart_auth_bytes_free(uint8_t *bytes);

/* reason: "scheduled" or "compromise". Result: {"device_id":"...","effective_at":1700000000} */
int32_t synheart_auth_rotate_key(synheart_auth *handle, const char *app_id, const char *reason, char **result);
/* reason: "server_instructed", "user_requested" or "key_lost". Result: {} */
int32_t synheart_auth_reset_device_identity(synheart_auth *handle, const char *app_id, const char *reason,
                                            char **result);
/* A token that any backend can check offline. The SDK renews it past half of its life. audience: one of the app's token_audiences,
 * or NULL for the app itself. Result: {"token":"...","remaining_seconds":600} */
int32_t synheart_auth_device_token(synheart_auth *handle, const char *app_id, const char *audience, char **result);
/* Finishes an interrupted rotation, and rotates a key that is due. synheart_auth_send(), and synheart_auth_register_device() on a
 * registered device, do it in the background. Result: {} */
int32_t synheart_auth_maintain(synheart_auth *handle, const char *app_id, char **result);
/* server_timestamp: the service's clock in unix seconds, as in a CLOCK_SKEW answer. Result: {} */
int32_t synheart_auth_correct_clock_skew(synheart_auth *handle, const char *app_id, double server_timestamp,
                                         char **result);

#ifdef __cplusplus
}
#endif
#endif
