#define _GNU_SOURCE
#include "clibcurl.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

const size_t clibcurl_abort = CURL_READFUNC_ABORT;

struct clibcurl_exchange {
    clibcurl_request request;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *lines;
    bool has_begun;
    // Whether curl may have begun to send the request.
    bool is_issued;
    CURLcode error;
};

// A thread that may be inside OpenSSL holds this lock for reading. When the process exits, OpenSSL frees its global state.
// `process_exits` takes the lock for writing before that, so that a thread of a running exchange waits and uses no freed memory.
static pthread_rwlock_t in_use;
static atomic_bool exits;
static pid_t first_process;

static void enter(void) {
    pthread_rwlock_rdlock(&in_use);
    if (!atomic_load(&exits)) return;
    // The process exits, so this thread must not enter OpenSSL any more. It got the lock because `process_exits` has not taken it
    // yet, or has given up after 2 seconds.
    pthread_rwlock_unlock(&in_use);
    for (;;) pause();
}
static void leave(void) { pthread_rwlock_unlock(&in_use); }

static void process_exits(void) {
    // A forked process has none of its parent's threads, but its copy of the lock may still be held by them. Waiting for
    // the lock would only delay the exit.
    if (getpid() != first_process) return;
    atomic_store(&exits, true);
    // Wait for 2 seconds at most: a thread that looks up a host name may hold the lock for longer, but is not inside OpenSSL then.
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 2;
    pthread_rwlock_timedwrlock(&in_use, &limit);
}

// The callbacks of `clibcurl_request` are the caller's code and may block for a long time, so they run without the lock.

static size_t take_line(char *bytes, size_t size, size_t count, void *context) {
    const clibcurl_request *request = &((clibcurl_exchange *)context)->request;
    leave();
    size_t taken = request->take_line(request->context, (const uint8_t *)bytes, size * count);
    enter();
    return taken;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context) {
    const clibcurl_request *request = &((clibcurl_exchange *)context)->request;
    leave();
    size_t taken = request->take_body(request->context, (const uint8_t *)bytes, size * count);
    enter();
    return taken;
}

static size_t give_body(char *bytes, size_t size, size_t count, void *context) {
    const clibcurl_request *request = &((clibcurl_exchange *)context)->request;
    leave();
    size_t given = request->give_body(request->context, (uint8_t *)bytes, size * count);
    enter();
    return given;
}

#if LIBCURL_VERSION_NUM >= 0x075000
static int note_issued(void *context, char *peer, char *own, int peer_port, int own_port) {
    (void)peer, (void)own, (void)peer_port, (void)own_port;
    ((clibcurl_exchange *)context)->is_issued = true;
    return CURL_PREREQFUNC_OK;
}
#endif

static bool started;
static void start(void) {
    first_process = getpid();
    pthread_rwlockattr_t attributes;
    started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK && pthread_rwlockattr_init(&attributes) == 0
        // Prefer the writer. Otherwise the transport's threads, up to 128, could keep taking the lock for reading, and the
        // exiting thread would not get it.
        && pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) == 0
        && pthread_rwlock_init(&in_use, &attributes) == 0
        // Runs before the handler that OpenSSL registered during curl_global_init: the last registered handler runs first.
        && atexit(process_exits) == 0;
}

#define SET(option, value) (curl_easy_setopt(exchange->easy, option, value) == CURLE_OK)

static bool configure(clibcurl_exchange *exchange) {
    const clibcurl_request *request = &exchange->request;
    // curl before 7.80 has no pre-request function. With such a curl, assume that any request may have been sent.
    // CURLINFO_REQUEST_SIZE does not help, because it is always 0 in curl 8.7.
    exchange->is_issued = true;
#if LIBCURL_VERSION_NUM >= 0x075000
    exchange->is_issued = !(SET(CURLOPT_PREREQFUNCTION, note_issued) && SET(CURLOPT_PREREQDATA, exchange));
#endif
    return SET(CURLOPT_URL, request->url) && SET(CURLOPT_CUSTOMREQUEST, request->method)
        // Prevent repeated requests: curl repeats a request if the server has closed a reused connection
        // (Curl_retry_request), or has refused an HTTP/2 stream. Use a new connection for each request, and HTTP/1.1, because
        // HTTP/2 has no advantage with one request for each connection.
        && SET(CURLOPT_FRESH_CONNECT, 1L) && SET(CURLOPT_FORBID_REUSE, 1L)
        && SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1)
        // Send exactly what was signed: keep the segments `.` and `..` of the path, and refuse a URL with a user name.
        && SET(CURLOPT_PATH_AS_IS, 1L) && SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L)
        && SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2)
        && SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) && SET(CURLOPT_TCP_KEEPALIVE, 1L) && SET(CURLOPT_NOSIGNAL, 1L)
        // Do not decode the body: a few bytes with several content codings can take hours to decode, within one call of curl.
        && SET(CURLOPT_HTTP_CONTENT_DECODING, 0L)
        && SET(CURLOPT_HEADERFUNCTION, take_line) && SET(CURLOPT_HEADERDATA, exchange)
        && SET(CURLOPT_WRITEFUNCTION, take_body) && SET(CURLOPT_WRITEDATA, exchange)
        && SET(CURLOPT_READFUNCTION, give_body) && SET(CURLOPT_READDATA, exchange)
        && (!request->is_head || SET(CURLOPT_NOBODY, 1L))
        && (request->length < 0 || (SET(CURLOPT_UPLOAD, 1L) && SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->length)))
        // Send no Expect header. With one, curl would wait a second for status 100, and repeat the request after status 417.
        && clibcurl_add_line(exchange, "Expect:");
}

clibcurl_exchange *clibcurl_open(const clibcurl_request *request) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    clibcurl_exchange *exchange = started ? calloc(1, sizeof *exchange) : NULL;
    if (exchange == NULL) return NULL;
    exchange->request = *request;
    enter();
    exchange->multi = curl_multi_init();
    exchange->easy = curl_easy_init();
    bool is_ready = exchange->multi != NULL && exchange->easy != NULL && configure(exchange);
    leave();
    if (is_ready) {
        // curl has its own copies of both texts.
        exchange->request.method = exchange->request.url = NULL;
        return exchange;
    }
    clibcurl_close(exchange);
    return NULL;
}

bool clibcurl_add_line(clibcurl_exchange *exchange, const char *line) {
    struct curl_slist *lines = curl_slist_append(exchange->lines, line);
    if (lines != NULL) exchange->lines = lines;
    return lines != NULL;
}

static clibcurl_state end(clibcurl_exchange *exchange, CURLcode error) {
    exchange->error = error;
    if (error == CURLE_OK) return clibcurl_done;
    if (exchange->is_issued) return clibcurl_failed;
    return error == CURLE_URL_MALFORMAT ? clibcurl_unsendable : clibcurl_unsent;
}

static clibcurl_state run(clibcurl_exchange *exchange) {
    if (!exchange->has_begun) {
        exchange->has_begun = SET(CURLOPT_HTTPHEADER, exchange->lines)
            && curl_multi_add_handle(exchange->multi, exchange->easy) == CURLM_OK;
        if (!exchange->has_begun) return end(exchange, CURLE_FAILED_INIT);
    }
    int running = 0, rest = 0;
    if (curl_multi_perform(exchange->multi, &running) != CURLM_OK) return end(exchange, CURLE_FAILED_INIT);
    if (running > 0) return clibcurl_runs;
    const CURLMsg *message = curl_multi_info_read(exchange->multi, &rest);
    return end(exchange, message != NULL && message->msg == CURLMSG_DONE ? message->data.result : CURLE_FAILED_INIT);
}

clibcurl_state clibcurl_run(clibcurl_exchange *exchange) {
    enter();
    clibcurl_state state = run(exchange);
    leave();
    if (state != clibcurl_runs || curl_multi_poll(exchange->multi, NULL, 0, 60000, NULL) == CURLM_OK) return state;
    return end(exchange, CURLE_FAILED_INIT);
}

void clibcurl_wake(clibcurl_exchange *exchange) { curl_multi_wakeup(exchange->multi); }

int clibcurl_error(const clibcurl_exchange *exchange) { return (int)exchange->error; }

const char *clibcurl_error_text(const clibcurl_exchange *exchange) { return curl_easy_strerror(exchange->error); }

void clibcurl_close(clibcurl_exchange *exchange) {
    enter();
    if (exchange->has_begun) curl_multi_remove_handle(exchange->multi, exchange->easy);
    // Waits until a name lookup that still runs has ended.
    if (exchange->easy != NULL) curl_easy_cleanup(exchange->easy);
    if (exchange->multi != NULL) curl_multi_cleanup(exchange->multi);
    leave();
    curl_slist_free_all(exchange->lines);
    free(exchange);
}
