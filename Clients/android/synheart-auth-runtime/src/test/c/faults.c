/* Makes each call of the library to the JVM fail in turn. The JVM is an imitation of a few functions. It checks what CheckJNI
 * checks: frames and threads are balanced, and only the calls that JNI allows are made while an exception is pending. It is so
 * small that valgrind can watch all of it.
 *
 *     faults LIBRARY */
#include <dlfcn.h>
#include <jni.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                            \
    do {                                                            \
        if (!(condition)) {                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1);                                                \
        }                                                           \
    } while (0)

/* An array, or any other object. */
struct object {
    jsize length;
    jbyte bytes[1024];
};

static struct object objects[64], class_object, exception;
static int used_objects;
static int calls, failing;   /* the number of the call that fails; 0: none */
static int frames, attached; /* open local frames; whether the thread is attached */
static int is_known;         /* whether the thread is one of the JVM's */
static struct object *pending;
static const char *answer; /* what the Kotlin functions return; NULL: null */
static jsize answer_length;
static jint number;

static int fails(void) { return ++calls == failing; }
static void must_be_quiet(void) { CHECK(!pending && (attached || is_known)); }
static struct object *throws(void) {
    pending = &exception;
    return NULL;
}
static struct object *object(jsize length) {
    CHECK(used_objects < 64 && length >= 0);
    struct object *made = &objects[used_objects++];
    made->length = length;
    return made;
}

static jclass find_class(JNIEnv *env, const char *name) {
    (void)env;
    must_be_quiet();
    CHECK(strcmp(name, "ai/synheart/auth/android/RuntimeFunctions") == 0);
    return fails() ? (jclass)throws() : (jclass)&class_object;
}
static jobject new_global(JNIEnv *env, jobject reference) {
    (void)env;
    must_be_quiet();
    return fails() ? NULL : reference;
}
static void delete_local(JNIEnv *env, jobject reference) { (void)env, (void)reference; }
static jmethodID static_method(JNIEnv *env, jclass type, const char *name, const char *descriptor) {
    (void)env;
    must_be_quiet();
    CHECK(type == (jclass)&class_object && name && descriptor[0] == '(');
    return fails() ? (jmethodID)throws() : (jmethodID)(intptr_t)name;
}
static jthrowable exception_occurred(JNIEnv *env) { return (void)env, (jthrowable)pending; }
static jboolean exception_check(JNIEnv *env) { return (void)env, pending != NULL; }
static void exception_clear(JNIEnv *env) {
    (void)env;
    pending = NULL;
}
static jint throw_again(JNIEnv *env, jthrowable thrown) {
    (void)env;
    must_be_quiet();
    pending = (struct object *)thrown;
    return 0;
}
static jint push_frame(JNIEnv *env, jint capacity) {
    (void)env;
    must_be_quiet();
    CHECK(capacity > 0);
    if (fails()) return throws(), -1;
    frames++;
    return 0;
}
static jobject pop_frame(JNIEnv *env, jobject result) {
    (void)env;
    CHECK(frames-- > 0 && !result);
    return NULL;
}
static jbyteArray new_array(JNIEnv *env, jsize length) {
    (void)env;
    must_be_quiet();
    return fails() ? (jbyteArray)throws() : (jbyteArray)object(length);
}
static void set_region(JNIEnv *env, jbyteArray array, jsize start, jsize length, const jbyte *bytes) {
    (void)env;
    must_be_quiet();
    struct object *made = (struct object *)array;
    CHECK(start == 0 && length == made->length && length <= (jsize)sizeof made->bytes);
    if (fails()) {
        throws();
        return;
    }
    memcpy(made->bytes, bytes, (size_t)length);
}
static jsize array_length(JNIEnv *env, jarray array) {
    (void)env;
    must_be_quiet();
    return ((struct object *)array)->length;
}
static void get_region(JNIEnv *env, jbyteArray array, jsize start, jsize length, jbyte *bytes) {
    (void)env;
    must_be_quiet();
    struct object *made = (struct object *)array;
    CHECK(start == 0 && length == made->length);
    if (fails()) {
        throws();
        return;
    }
    memcpy(bytes, made->bytes, (size_t)length);
}
static jobject call_object(JNIEnv *env, jclass type, jmethodID method, const jvalue *values) {
    (void)env;
    must_be_quiet();
    CHECK(type == (jclass)&class_object && method && values[0].l);
    if (fails()) return (jobject)throws();
    if (!answer) return NULL;
    struct object *made = object(answer_length);
    if (answer_length <= (jsize)sizeof made->bytes) memcpy(made->bytes, answer, (size_t)answer_length);
    return (jobject)made;
}
static jint call_int(JNIEnv *env, jclass type, jmethodID method, const jvalue *values) {
    (void)env;
    must_be_quiet();
    CHECK(type == (jclass)&class_object && method && values[0].l);
    return fails() ? (throws(), 0) : number;
}

static const struct JNINativeInterface_ functions = {
    .FindClass = find_class, .NewGlobalRef = new_global, .DeleteLocalRef = delete_local, .GetStaticMethodID = static_method,
    .ExceptionOccurred = exception_occurred, .ExceptionCheck = exception_check, .ExceptionClear = exception_clear, .Throw = throw_again,
    .PushLocalFrame = push_frame, .PopLocalFrame = pop_frame, .NewByteArray = new_array, .SetByteArrayRegion = set_region,
    .GetArrayLength = array_length, .GetByteArrayRegion = get_region, .CallStaticObjectMethodA = call_object, .CallStaticIntMethodA = call_int,
};
static JNIEnv environment = &functions;

static jint get_env(JavaVM *vm, void **env, jint version) {
    (void)vm;
    CHECK(version == JNI_VERSION_1_6);
    if (!attached && !is_known) return JNI_EDETACHED;
    *env = &environment;
    return fails() ? JNI_EVERSION : JNI_OK;
}
static jint attach(JavaVM *vm, void **env, void *arguments) {
    (void)vm;
    CHECK(!attached && !is_known && ((JavaVMAttachArgs *)arguments)->version == JNI_VERSION_1_6);
    if (fails()) return JNI_ENOMEM;
    *env = &environment;
    attached = 1;
    return JNI_OK;
}
static jint detach(JavaVM *vm) {
    (void)vm;
    CHECK(attached && !frames);
    attached = 0;
    pending = NULL;
    return JNI_OK;
}
static const struct JNIInvokeInterface_ invocation = {.GetEnv = get_env, .AttachCurrentThreadAsDaemon = attach, .DetachCurrentThread = detach};
static JavaVM machine = &invocation;

static jint (*on_load)(JavaVM *, void *);
static char *(*generate_key)(const char *), *(*sign_bytes)(const char *, const uint8_t *, intptr_t);
static char *(*get_attestation)(const char *, const uint8_t *, intptr_t), *(*secure_load)(const char *, const char *);
static int32_t (*key_exists)(const char *), (*delete_key)(const char *), (*secure_delete)(const char *, const char *);
static int32_t (*secure_store)(const char *, const char *, const char *);

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    CHECK(found);
    return found;
}

static const uint8_t HASH[32] = {1};

/* Calls function `which` with the call number `fault` failing. Returns whether a call failed, and checks the result. */
static int with_fault(int which, int fault) {
    calls = used_objects = 0;
    failing = fault;
    struct object *before = pending;
    char *text = NULL;
    int32_t state = 0;
    switch (which) {
    case 0: text = generate_key("device"); break;
    case 1: text = sign_bytes("device", HASH, 32); break;
    case 2: text = secure_load("service", "key"); break;
    case 3: state = delete_key("device"); break;
    case 4: state = secure_store("service", "key", "value"); break;
    case 5: state = secure_delete("service", "key"); break;
    case 6: state = key_exists("device"); break;
    case 7: text = get_attestation("device", HASH, 32); break;
    }
    int has_failed = failing && calls >= failing;
    CHECK(frames == 0 && !attached && pending == before);
    if (which < 3) CHECK(has_failed ? !text : text && strcmp(text, answer) == 0);
    if (which >= 3 && which < 6) CHECK(has_failed ? state != 0 : state == number);
    if (which == 6) CHECK(state == (has_failed ? 1 : number));
    if (which == 7) CHECK(text && (has_failed ? strstr(text, "\"format\":\"none\"") != NULL : strcmp(text, answer) == 0));
    free(text);
    return has_failed;
}

static int all_faults(void) {
    int count = 0;
    for (int which = 0; which < 8; which++) {
        CHECK(!with_fault(which, 0));
        for (int fault = 1; with_fault(which, fault); fault++) count++;
    }
    return count;
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    void *library = dlopen(arguments[1], RTLD_NOW);
    CHECK(library);
    *(void **)&on_load = symbol(library, "JNI_OnLoad");
    *(void **)&generate_key = symbol(library, "synheart_native_generate_key");
    *(void **)&sign_bytes = symbol(library, "synheart_native_sign_bytes");
    *(void **)&get_attestation = symbol(library, "synheart_native_get_attestation");
    *(void **)&key_exists = symbol(library, "synheart_native_key_exists");
    *(void **)&delete_key = symbol(library, "synheart_native_delete_key");
    *(void **)&secure_store = symbol(library, "synheart_native_secure_store");
    *(void **)&secure_load = symbol(library, "synheart_native_secure_load");
    *(void **)&secure_delete = symbol(library, "synheart_native_secure_delete");

    /* Loading: no function works until the class and all methods were found. */
    is_known = 1;
    int faults = 0;
    for (failing = 1; calls = 0, on_load(&machine, NULL) == JNI_ERR; failing++) {
        faults++;
        pending = NULL;
        CHECK(!generate_key("device") && key_exists("device") == 1 && delete_key("device"));
    }
    CHECK(faults == 11 && !pending);

    answer = "{\"x\":\"AA\",\"y\":\"BB\"}";
    answer_length = (jsize)strlen(answer);
    for (is_known = 0; is_known < 2; is_known++) faults += all_faults();
    /* A pending exception of the caller survives the call. */
    is_known = 1;
    pending = &objects[63];
    faults += all_faults();
    pending = NULL;

    /* Results that are no C string: null, and a text with a zero byte. */
    failing = 0;
    answer = NULL;
    CHECK(!generate_key("device"));
    answer = "a\0b";
    answer_length = 3;
    used_objects = 0;
    CHECK(!generate_key("device") && !secure_load("s", "k"));
    answer_length = 1024 * 1024 + 1;
    CHECK(!generate_key("device"));
    answer = "";
    answer_length = 0;
    char *empty = secure_load("s", "k");
    CHECK(empty && !empty[0]);
    free(empty);
    CHECK(frames == 0 && dlclose(library) == 0);
    printf("%d faults\n", faults);
    return 0;
}
