/* SPDX-License-Identifier: MIT
 * Labels for Node: an addon of two functions, set(key, value) and unset(key), on Node's stable C ABI.
 * Its few declarations are here, so that it compiles without Node's headers.
 *
 *     gcc -shared -fPIC -Iinclude examples/labels_node.c -o labels.node
 */
#include <stddef.h>

#include "labelprof.h"

typedef struct env *napi_env;
typedef struct value *napi_value;
typedef struct callback_info *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env, napi_callback_info);
int napi_get_cb_info(napi_env, napi_callback_info, size_t *, napi_value *, napi_value *, void **);
int napi_get_value_string_utf8(napi_env, napi_value, char *, size_t, size_t *);
int napi_create_int32(napi_env, int, napi_value *);
int napi_create_function(napi_env, const char *, size_t, napi_callback, void *, napi_value *);
int napi_set_named_property(napi_env, napi_value, const char *, napi_value);

enum { KEY_BYTES = 65, VALUE_BYTES = 257 };

static napi_value set(napi_env env, napi_callback_info info)
{
    char key[KEY_BYTES] = "", value[VALUE_BYTES] = "";
    napi_value arguments[2], result = NULL;
    size_t n = 2;
    napi_get_cb_info(env, info, &n, arguments, NULL, NULL);
    napi_get_value_string_utf8(env, arguments[0], key, sizeof key, NULL);
    napi_get_value_string_utf8(env, arguments[1], value, sizeof value, NULL);
    napi_create_int32(env, labelprof_set(key, value), &result);
    return result;
}

static napi_value unset(napi_env env, napi_callback_info info)
{
    char key[KEY_BYTES] = "";
    napi_value argument, result = NULL;
    size_t n = 1;
    napi_get_cb_info(env, info, &n, &argument, NULL, NULL);
    napi_get_value_string_utf8(env, argument, key, sizeof key, NULL);
    napi_create_int32(env, labelprof_unset(key), &result);
    return result;
}

static void export_function(napi_env env, napi_value exports, const char *name, napi_callback call)
{
    napi_value function;
    if (napi_create_function(env, name, (size_t)-1, call, NULL, &function) == 0)
        napi_set_named_property(env, exports, name, function);
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env,
                                                                          napi_value exports)
{
    export_function(env, exports, "set", set);
    export_function(env, exports, "unset", unset);
    return exports;
}
