/* A process that exits while an exchange over TLS may still run. OpenSSL's exit handler must not free what the exchange uses.
 *
 *     exit SERVICE DIRECTORY HTTPS-ORIGIN MILLISECONDS
 *
 * SERVICE is a URL of stand_in_service.py. The send ends by its deadline. The process exits at once. */
#include <stdio.h>
#include <stdlib.h>

#include "synheart_auth.h"

int main(int count, char **words) {
    if (count != 5) return 2;
    synheart_auth *auth = NULL;
    if (synheart_auth_create_with_software_keys(words[1], words[2], &auth, NULL) != 0) return 3;
    if (synheart_auth_use_development_mode(auth, "android", NULL) != 0) return 4;
    if (synheart_auth_register_device(auth, "com.example.app", NULL) != 0) return 5;
    if (synheart_auth_allow_origin(auth, words[3], NULL) != 0) return 6;
    synheart_auth_request request = {.method = "GET", .url = words[3], .deadline_ms = atoi(words[4])};
    int status = synheart_auth_send(auth, "com.example.app", &request, NULL, NULL, NULL);
    synheart_auth_free(auth);
    return status == SYNHEART_AUTH_NETWORK_ERROR ? 0 : 7;
}
