#include "synheart_auth.h"

static const synheart_native_callbacks table = {
    synheart_native_generate_key, synheart_native_sign_bytes, synheart_native_get_attestation,
    synheart_native_key_exists,   synheart_native_delete_key,
};

const synheart_native_callbacks *synheart_native_callback_table(void) { return &table; }
