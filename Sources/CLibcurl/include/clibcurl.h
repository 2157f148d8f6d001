// One HTTP request over libcurl (https://curl.se/libcurl/c/). For the SDK's transport on Linux.
//
// curl's own header is not included here: its system headers would become part of this module.
#ifndef CLIBCURL_H
#define CLIBCURL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clibcurl_exchange clibcurl_exchange;

// Called with the bytes of a header line or of the body. Any result other than `count` ends the exchange.
typedef size_t clibcurl_take(void *context, const uint8_t *bytes, size_t count);

// Called to get the request's body. Writes at most `count` bytes to `bytes` and returns their number, 0 at the end of
// the body. The result `clibcurl_abort` ends the exchange.
typedef size_t clibcurl_give(void *context, uint8_t *bytes, size_t count);
extern const size_t clibcurl_abort;

typedef struct {
    const char *method;
    const char *url;
    // The size of the body in bytes; -1 if the request has neither a body nor a Content-Length.
    int64_t length;
    // Whether the answer has no body.
    bool is_head;
    void *context;
    clibcurl_take *take_line;
    clibcurl_take *take_body;
    clibcurl_give *give_body;
} clibcurl_request;

// Prepares an exchange for the request, and sends nothing yet. Copies `method` and `url`. Returns NULL if memory runs
// out, or if curl cannot be initialized.
clibcurl_exchange *clibcurl_open(const clibcurl_request *request);

// Adds a header line, which is given without its line ending. Returns false if memory runs out.
bool clibcurl_add_line(clibcurl_exchange *exchange, const char *line);

// clibcurl_unsent: no byte of the request was sent. clibcurl_unsendable: likewise, and a retry cannot succeed (a malformed URL).
typedef enum { clibcurl_runs, clibcurl_done, clibcurl_failed, clibcurl_unsent, clibcurl_unsendable } clibcurl_state;

// Sends and receives what is possible now. Then waits until there is more to do, `clibcurl_wake` is called, or a minute has passed.
clibcurl_state clibcurl_run(clibcurl_exchange *exchange);

// Ends the wait of `clibcurl_run`, from any thread.
void clibcurl_wake(clibcurl_exchange *exchange);

// The number and the text of the failure.
int clibcurl_error(const clibcurl_exchange *exchange);
const char *clibcurl_error_text(const clibcurl_exchange *exchange);

void clibcurl_close(clibcurl_exchange *exchange);

#endif
