/* Calls every function of the C interface several times, also with errors, under tools that find memory errors.
 *
 *     life PORT DIRECTORY
 *
 * PORT is that of stand_in_service.py. The host uses the keys of the runtime's interface (synheart_native_…) as its key store. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "synheart_auth.h"

#define APP "com.example.app"

static void expect(int condition, const char *what, int line) {
    if (condition) return;
    fprintf(stderr, "life.c:%d: %s\n", line, what);
    exit(1);
}
#define EXPECT(condition) expect(!!(condition), #condition, __LINE__)

/* ---------------------------------------------------------------- a host in memory */

enum { RECORDS = 4 };

typedef struct memory {
    char *names[RECORDS];
    uint8_t *values[RECORDS];
    int64_t counts[RECORDS];
    int is_lost;
    atomic_int *released;
} memory;

static int put(const uint8_t *value, int64_t count, uint8_t *out, int64_t capacity, int64_t *length) {
    if (count > capacity) return SYNHEART_AUTH_HOST_FAILED;
    memcpy(out, value, (size_t)count);
    *length = count;
    return SYNHEART_AUTH_HOST_OK;
}

static int decode(const char *text, size_t count, uint8_t *out) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t bits = 0;
    int held = 0, written = 0;
    for (size_t i = 0; i < count; i++) {
        const char *letter = strchr(letters, text[i]);
        if (!letter || !*letter) return -1;
        bits = bits << 6 | (uint32_t)(letter - letters);
        held += 6;
        if (held >= 8) out[written++] = (uint8_t)(bits >> (held -= 8));
    }
    return written;
}

/* Gets the public key of `alias` as {"x":"...","y":"..."}, and converts it to a point of 65 bytes. Creates the key
 * if there is none. */
static int point(const char *alias, uint8_t *out) {
    char *json = synheart_native_generate_key(alias);
    if (!json) return 0;
    const char *x = strstr(json, "\"x\":\""), *y = strstr(json, "\"y\":\"");
    out[0] = 4;
    int whole = x && y && decode(x + 5, 43, out + 1) == 32 && decode(y + 5, 43, out + 33) == 32;
    free(json);
    return whole;
}

static int32_t load_key(void *user, const char *alias, uint8_t *out, int64_t capacity, int64_t *length) {
    (void)user;
    uint8_t bytes[65];
    if (!synheart_native_key_exists(alias)) return SYNHEART_AUTH_HOST_NOT_FOUND;
    return point(alias, bytes) ? put(bytes, 65, out, capacity, length) : SYNHEART_AUTH_HOST_FAILED;
}

static int32_t create_key(void *user, const char *alias, const uint8_t *challenge, int64_t count, uint8_t *out, int64_t capacity,
                          int64_t *length) {
    (void)challenge;
    (void)count;
    uint8_t bytes[65];
    synheart_native_delete_key(alias);
    if (!point(alias, bytes)) return SYNHEART_AUTH_HOST_FAILED;
    return load_key(user, alias, out, capacity, length);
}

/* An ASN.1 INTEGER of 32 big-endian bytes. */
static int integer(const uint8_t *value, uint8_t *out) {
    int first = 0;
    while (first < 31 && !value[first]) first++;
    int pad = value[first] >> 7, count = 32 - first;
    out[0] = 2;
    out[1] = (uint8_t)(count + pad);
    out[2] = 0;
    memcpy(out + 2 + pad, value + first, (size_t)count);
    return 2 + pad + count;
}

static int32_t sign(void *user, const char *alias, const uint8_t *message, int64_t count, uint8_t *out, int64_t capacity,
                    int64_t *length) {
    if (((memory *)user)->is_lost) return SYNHEART_AUTH_HOST_INVALIDATED;
    char *text = synheart_native_sign_bytes(alias, message, count);
    if (!text) return SYNHEART_AUTH_HOST_NOT_FOUND;
    uint8_t raw[64], der[72];
    int whole = decode(text, strlen(text), raw) == 64;
    free(text);
    if (!whole) return SYNHEART_AUTH_HOST_FAILED;
    int end = 2 + integer(raw, der + 2);
    end += integer(raw + 32, der + end);
    der[0] = 0x30;
    der[1] = (uint8_t)(end - 2);
    return put(der, end, out, capacity, length);
}

static int32_t delete_key(void *user, const char *alias) {
    (void)user;
    return synheart_native_delete_key(alias) ? SYNHEART_AUTH_HOST_FAILED : SYNHEART_AUTH_HOST_OK;
}

static int32_t attest(void *user, const char *alias, const uint8_t *challenge, int64_t count, const uint8_t *nonce, uint8_t *out,
                      int64_t capacity, int64_t *length) {
    (void)user;
    (void)alias;
    (void)challenge;
    (void)count;
    (void)nonce;
    static const char evidence[] = "{\"proof\":\"token\",\"key_attestation\":[\"AAAA\"]}";
    return put((const uint8_t *)evidence, (int64_t)strlen(evidence), out, capacity, length);
}

static int slot(memory *memory, const char *name) {
    int free_slot = -1;
    for (int i = 0; i < RECORDS; i++) {
        if (memory->names[i] && !strcmp(memory->names[i], name)) return i;
        if (!memory->names[i]) free_slot = i;
    }
    return free_slot;
}

static void clear(memory *memory, int i) {
    free(memory->names[i]);
    free(memory->values[i]);
    memory->names[i] = NULL;
    memory->values[i] = NULL;
}

static int32_t read_record(void *user, const char *name, uint8_t *out, int64_t capacity, int64_t *length) {
    memory *memory = user;
    int i = slot(memory, name);
    if (i < 0 || !memory->names[i]) return SYNHEART_AUTH_HOST_NOT_FOUND;
    return put(memory->values[i], memory->counts[i], out, capacity, length);
}

static int32_t write_record(void *user, const char *name, const uint8_t *bytes, int64_t count) {
    memory *memory = user;
    int i = slot(memory, name);
    if (i < 0) return SYNHEART_AUTH_HOST_FAILED;
    clear(memory, i);
    memory->names[i] = strdup(name);
    memory->values[i] = malloc((size_t)count + 1);
    memory->counts[i] = count;
    if (!memory->names[i] || !memory->values[i]) return SYNHEART_AUTH_HOST_FAILED;
    memcpy(memory->values[i], bytes, (size_t)count);
    return SYNHEART_AUTH_HOST_OK;
}

static int32_t remove_record(void *user, const char *name) {
    memory *memory = user;
    int i = slot(memory, name);
    if (i >= 0) clear(memory, i);
    return SYNHEART_AUTH_HOST_OK;
}

static void release(void *user) {
    memory *memory = user;
    for (int i = 0; i < RECORDS; i++) clear(memory, i);
    ++*memory->released;
    free(memory);
}

/* ---------------------------------------------------------------- the runtime's interface, and the SDK's */

static void native_face(void) {
    char *text;
    EXPECT((text = synheart_native_generate_key("one")));
    free(text);
    EXPECT((text = synheart_native_sign_bytes("one", (const uint8_t *)"a\0b", 3)));
    free(text);
    EXPECT((text = synheart_native_get_attestation("one", (const uint8_t *)"01234567890123456789012345678901", 32)));
    EXPECT(strstr(text, "\"none\"") != NULL);
    free(text);
    EXPECT((text = synheart_native_get_attestation("one", NULL, 0)));
    free(text);
    EXPECT(synheart_native_key_exists("one") == 1 && synheart_native_delete_key("one") == 0);
    EXPECT(!synheart_native_sign_bytes("one", (const uint8_t *)"", 0) && !synheart_native_generate_key(NULL));
    EXPECT(synheart_native_delete_key("one") == 0 && synheart_native_delete_key(NULL) != 0);
    EXPECT(synheart_native_secure_store("service", "key", "value") == 0);
    EXPECT((text = synheart_native_secure_load("service", "key")) && !strcmp(text, "value"));
    free(text);
    EXPECT(synheart_native_secure_delete("service", "key") == 0 && !synheart_native_secure_load("service", "key"));
}

static void fails(int32_t status, int32_t expected, char **result, int line) {
    expect(status == expected && *result && strstr(*result, "\"code\"") != NULL, "fails as it should", line);
    synheart_auth_string_free(*result);
    *result = NULL;
}
#define FAILS(call, status) fails(call, status, &result, __LINE__)

static void succeeds(int32_t status, char **result, const char *part, int line) {
    if (status || !*result || !strstr(*result, part)) fprintf(stderr, "%d %s\n", status, *result ? *result : "");
    expect(!status && *result && strstr(*result, part) != NULL, "succeeds", line);
    synheart_auth_string_free(*result);
    *result = NULL;
}
#define SUCCEEDS(call, part) succeeds(call, &result, part, __LINE__)

/* Waits until the host is released: work that an operation started may use the host for a moment longer. */
static void expect_released(atomic_int *released) {
    for (int i = 0; i < 10000 && *released == 0; i++) usleep(1000);
    EXPECT(*released == 1);
}

static void sends(synheart_auth *auth, const char *url, const char *directory) {
    char *result = NULL, there[128], file[256];
    uint8_t *answer = NULL;
    int64_t count = -1;
    const uint8_t data[] = {0, 'a', 0xff};
    snprintf(there, sizeof(there), "%s/v1/readings?day=1", url);
    synheart_auth_request request = {.method = "post", .url = there, .headers = "{\"X-Mine\":\"1\"}", .body = data, .body_length = 3};
    SUCCEEDS(synheart_auth_send(auth, APP, &request, &result, &answer, &count), "\"status\":200");
    EXPECT(count == 3 && answer && !memcmp(answer, data, 3));
    synheart_auth_bytes_free(answer);
    SUCCEEDS(synheart_auth_sign(auth, APP, &request, &result), "X-Synheart-Signature");
    SUCCEEDS(synheart_auth_send(auth, APP, &request, &result, NULL, NULL), "\"headers\":[{");
    EXPECT(synheart_auth_send(auth, APP, &request, NULL, NULL, NULL) == SYNHEART_AUTH_OK);
    request.maximum_answer = 2;
    FAILS(synheart_auth_send(auth, APP, &request, &result, &answer, &count), SYNHEART_AUTH_ANSWER_TOO_LARGE);
    EXPECT(!answer && !count);

    /* A request cannot use a scheme other than the one of its SDK instance. */
    request.scheme = 2;
    FAILS(synheart_auth_sign(auth, APP, &request, &result), SYNHEART_AUTH_SIGNING_FAILED);
    FAILS(synheart_auth_use_scheme(auth, 3, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_use_scheme(NULL, 2, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    SUCCEEDS(synheart_auth_use_scheme(auth, 2, &result), "{}");
    /* Scheme 2 (RFC 9421). The SDK sends exactly the bytes that it signed, also if they are in a file. */
    snprintf(file, sizeof(file), "%s.body", directory);
    FILE *stream = fopen(file, "wb");
    EXPECT(stream && fwrite(data, 1, 3, stream) == 3 && !fclose(stream));
    request = (synheart_auth_request){.scheme = 2, .method = "PUT", .url = there, .body_file = file};
    SUCCEEDS(synheart_auth_sign(auth, APP, &request, &result), "Signature-Input");
    request.method = "POST";
    request.deadline_ms = 20000;
    SUCCEEDS(synheart_auth_send(auth, APP, &request, &result, &answer, &count), "\"status\":200");
    EXPECT(count == 3 && answer && !memcmp(answer, data, 3));
    synheart_auth_bytes_free(answer);
    unlink(file);
    FAILS(synheart_auth_sign(auth, APP, &request, &result), SYNHEART_AUTH_SIGNING_FAILED);
    request = (synheart_auth_request){.scheme = 2, .method = "GET", .url = there};
    SUCCEEDS(synheart_auth_send(auth, APP, &request, &result, &answer, &count), "\"status\":200");
    EXPECT(!answer && !count);

    /* A request to another origin is signed only after a call has allowed that origin. */
    request.url = "http://127.0.0.1:1/v1";
    FAILS(synheart_auth_sign(auth, APP, &request, &result), SYNHEART_AUTH_SIGNING_FAILED);
    SUCCEEDS(synheart_auth_allow_origin(auth, "http://127.0.0.1:1", &result), "{}");
    SUCCEEDS(synheart_auth_sign(auth, APP, &request, &result), "Signature");
    FAILS(synheart_auth_send(auth, APP, &request, &result, &answer, &count), SYNHEART_AUTH_NETWORK_ERROR);
    const char *refused[] = {"example.com", "http://example.com", "http://127.0.0.1.example.com:8080", "https://example.com/"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        FAILS(synheart_auth_allow_origin(auth, refused[i], &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    SUCCEEDS(synheart_auth_allow_alias(auth, "https://auth.example.com", &result), "{}");
    FAILS(synheart_auth_allow_alias(auth, "auth.example.com", &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_allow_alias(NULL, "https://auth.example.com", &result), SYNHEART_AUTH_INVALID_ARGUMENT);

    request.url = there;
    const char *headers[] = {"[]", "{\"A\":1}", "{\"A\":\"1\\r\\nB: 2\"}", "{\"\":\"1\"}", "{\"A\":\"1\"", "\xff",
                             "{\"A b\":\"1\"}", "{\"A:\":\"1\"}", "{\"A\":\"1\\u0000\"}", "{\"content-length\":\"3\"}",
                             "{\"Transfer-Encoding\":\"chunked\"}", "{\"HOST\":\"example.com\"}", "{\"Connection\":\"close\"}",
                             "{\"X-Synheart-Signature\":\"AAAA\"}", "{\"x-device-id\":\"1\"}", "{\"Content-Digest\":\"1\"}"};
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
        request.headers = headers[i];
        FAILS(synheart_auth_send(auth, APP, &request, &result, &answer, &count), SYNHEART_AUTH_INVALID_ARGUMENT);
    }
    synheart_auth_request bad[] = {
        {.scheme = 3, .method = "GET", .url = there},
        {.method = NULL, .url = there},
        {.method = "GET", .url = NULL},
        {.method = "GET", .url = there, .body_length = 1},
        {.method = "GET", .url = there, .body = data, .body_length = -1},
        {.method = "POST", .url = there, .body = data, .body_length = INT64_MAX},
        {.method = "POST", .url = there, .body = data, .body_length = (int64_t)1 << 40},
        {.scheme = 2, .method = "GET", .url = there, .body = data, .body_length = 1, .body_file = "/dev/null"},
        {.method = "GET", .url = there, .deadline_ms = -1},
        {.method = "GET", .url = there, .maximum_answer = INT64_MAX},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        FAILS(synheart_auth_send(auth, APP, &bad[i], &result, &answer, &count), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_send(auth, APP, NULL, &result, &answer, &count), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_sign(NULL, APP, &request, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    synheart_auth_bytes_free(NULL);
}

static void whole_sdk(const char *url, const char *directory) {
    atomic_int released = 0;
    memory *user = calloc(1, sizeof(memory));
    EXPECT(user);
    user->released = &released;
    synheart_auth_host host = {1, sizeof(synheart_auth_host), user,   create_key,  load_key,     sign,          delete_key,
                               attest, read_record, write_record, remove_record, release};
    synheart_auth *auth = NULL;
    char *result = NULL;
    const uint8_t *body = (const uint8_t *)"{}";
    SUCCEEDS(synheart_auth_create(url, directory, &host, &auth, &result), "{}");
    SUCCEEDS(synheart_auth_set_deadline(auth, 60000, &result), "{}");
    FAILS(synheart_auth_set_deadline(auth, 3600001, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_set_deadline(auth, -1, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_set_deadline(NULL, 0, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    SUCCEEDS(synheart_auth_set_deadline(auth, 0, &result), "{}");
    SUCCEEDS(synheart_auth_is_registered(auth, APP, &result), "false");
    FAILS(synheart_auth_sign_request(auth, APP, "GET", "/", NULL, 0, &result), SYNHEART_AUTH_NOT_REGISTERED);
    SUCCEEDS(synheart_auth_register_device(auth, APP, &result), "\"registered\"");
    SUCCEEDS(synheart_auth_register_device(auth, APP, &result), "alreadyRegistered");
    EXPECT(synheart_auth_register_device(auth, APP, NULL) == SYNHEART_AUTH_OK);
    SUCCEEDS(synheart_auth_get_device_id(auth, APP, &result), "device_id");
    SUCCEEDS(synheart_auth_get_state(auth, APP, &result), "registered");
    for (int i = 0; i < 20; i++) SUCCEEDS(synheart_auth_sign_request(auth, APP, "POST", "/v1", body, 2, &result), "X-Synheart");
    FAILS(synheart_auth_correct_clock_skew(auth, APP, 9999999999.0, &result), SYNHEART_AUTH_CLOCK_SKEW);
    SUCCEEDS(synheart_auth_correct_clock_skew(auth, APP, (double)time(NULL), &result), "{}");
    FAILS(synheart_auth_sign_request(auth, APP, "POST", "no path", body, 2, &result), SYNHEART_AUTH_SIGNING_FAILED);
    FAILS(synheart_auth_sign_request(auth, APP, NULL, "/", body, 2, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_sign_request(auth, APP, "GET", "/", body, -1, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_register_device(auth, NULL, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_register_device(auth, "\xff", &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_register_device(NULL, APP, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_rotate_key(auth, APP, "because", &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    SUCCEEDS(synheart_auth_rotate_key(auth, APP, "scheduled", &result), "effective_at");
    SUCCEEDS(synheart_auth_sign_request(auth, APP, "POST", "/v1", body, 2, &result), "X-Synheart");
    SUCCEEDS(synheart_auth_device_token(auth, APP, NULL, &result), "remaining_seconds");
    SUCCEEDS(synheart_auth_device_token(auth, APP, "other", &result), "token");
    FAILS(synheart_auth_device_token(auth, APP, "\xff", &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    SUCCEEDS(synheart_auth_maintain(auth, APP, &result), "{}");
    sends(auth, url, directory);
    /* The device has signed under scheme 2, so it no longer signs under scheme 1. */
    FAILS(synheart_auth_sign_request(auth, APP, "GET", "/", NULL, 0, &result), SYNHEART_AUTH_SIGNING_FAILED);
    char anywhere[64];
    snprintf(anywhere, sizeof(anywhere), "%s/v1", url);
    synheart_auth_request lost = {.method = "GET", .url = anywhere};
    user->is_lost = 1;
    FAILS(synheart_auth_sign(auth, APP, &lost, &result), SYNHEART_AUTH_KEY_INVALIDATED);
    user->is_lost = 0;
    SUCCEEDS(synheart_auth_register_device(auth, APP, &result), "\"registered\"");
    SUCCEEDS(synheart_auth_reset_device_identity(auth, APP, "user_requested", &result), "{}");
    synheart_auth_free(auth);
    expect_released(&released);
}

static int32_t answer_nothing(void *user, const synheart_auth_http_request *request, synheart_auth_http_answer *answer) {
    (void)user;
    const uint8_t body[] = {'n', 'o'};
    EXPECT(strstr(request->url, "/auth/v1/") && strstr(request->headers, "application/json") && request->body_length > 0);
    EXPECT(synheart_auth_http_answer_set(answer, 404, "not JSON", body, 2) == SYNHEART_AUTH_INVALID_ARGUMENT);
    EXPECT(synheart_auth_http_answer_set(answer, 404, "[{\"name\":\"X-A\",\"value\":\"b\"}]", body, 2) == 0);
    EXPECT(synheart_auth_http_answer_set(answer, 404, NULL, NULL, 0) == SYNHEART_AUTH_INVALID_ARGUMENT);
    return SYNHEART_AUTH_HOST_OK;
}
static void hear(void *user, const char *text) {
    (void)user;
    EXPECT(text[0] == '{');
}
static void release_nothing(void *user) { (void)user; }

/* The host's HTTP client, observer and development mode. */
static void own_parts(synheart_auth *auth) {
    char *result = NULL;
    synheart_auth_transport transport = {1, sizeof transport, NULL, answer_nothing, release_nothing},
                            none = {1, sizeof none, NULL, NULL, NULL}, other = {2, sizeof other, NULL, answer_nothing, NULL},
                            small = {1, sizeof small - 1, NULL, answer_nothing, NULL};
    synheart_auth_observer observer = {1, sizeof observer, NULL, hear, hear, release_nothing};
    FAILS(synheart_auth_set_transport(auth, NULL, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_set_transport(auth, &none, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    /* A table of another version, and one that is too small. */
    FAILS(synheart_auth_set_transport(auth, &other, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_set_transport(auth, &small, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    SUCCEEDS(synheart_auth_set_transport(auth, &transport, &result), "{}");
    FAILS(synheart_auth_set_observer(auth, NULL, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    for (int i = 0; i < 2; i++) SUCCEEDS(synheart_auth_set_observer(auth, &observer, &result), "{}");
    FAILS(synheart_auth_use_development_mode(auth, "symbian", &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    SUCCEEDS(synheart_auth_set_deadline(auth, 500, &result), "{}");
    EXPECT(synheart_auth_register_device(auth, APP, NULL) == SYNHEART_AUTH_NETWORK_ERROR);
    synheart_auth_cancel(auth);
    EXPECT(synheart_auth_http_answer_set(NULL, 200, NULL, NULL, 0) == SYNHEART_AUTH_INVALID_ARGUMENT);
}

static void failed_creations(const char *directory) {
    atomic_int released = 0;
    memory *user = calloc(1, sizeof(memory));
    EXPECT(user);
    user->released = &released;
    synheart_auth_host host = {.version = 1, .size = sizeof host, .user = user, .release = release};
    synheart_auth *auth = NULL;
    char *result = NULL;
    FAILS(synheart_auth_create("http://example.com", directory, &host, &auth, &result), SYNHEART_AUTH_NOT_CONFIGURED);
    EXPECT(!auth);
    expect_released(&released);
    /* The storage callbacks must be all set or all NULL, and they need a directory for their locks. The first three hosts lack a
     * callback, and the last one gets no directory. The SDK refuses and releases each. */
    synheart_auth_host hosts[] = {
        {.version = 1, .size = sizeof(synheart_auth_host), .read_record = read_record, .write_record = write_record, .release = release},
        {.version = 1, .size = sizeof(synheart_auth_host), .write_record = write_record, .remove_record = remove_record, .release = release},
        {.version = 1, .size = sizeof(synheart_auth_host), .read_record = read_record, .remove_record = remove_record, .release = release},
        {.version = 1, .size = sizeof(synheart_auth_host), .read_record = read_record, .write_record = write_record, .remove_record = remove_record, .release = release},
    };
    for (int i = 0; i < 4; i++) {
        released = 0;
        EXPECT(user = calloc(1, sizeof(memory)));
        user->released = &released;
        hosts[i].user = user;
        auth = (synheart_auth *)&released;
        FAILS(synheart_auth_create("https://example.com", i < 3 ? directory : NULL, &hosts[i], &auth, &result),
              SYNHEART_AUTH_INVALID_ARGUMENT);
        EXPECT(!auth);
        expect_released(&released);
    }
    FAILS(synheart_auth_create(NULL, NULL, NULL, &auth, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    FAILS(synheart_auth_create("https://example.com", NULL, NULL, NULL, &result), SYNHEART_AUTH_INVALID_ARGUMENT);
    SUCCEEDS(synheart_auth_create_with_software_keys("http://127.0.0.1:1", directory, &auth, &result), "{}");
    SUCCEEDS(synheart_auth_is_registered(auth, APP, &result), "false");
    own_parts(auth);
    synheart_auth_free(auth);
    synheart_auth_free(NULL);
    synheart_auth_cancel(NULL);
    synheart_auth_string_free(NULL);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%s", arguments[1]);
    for (int round = 0; round < 3; round++) {
        native_face();
        whole_sdk(url, arguments[2]);
        failed_creations(arguments[2]);
    }
    puts("ok");
    return 0;
}
