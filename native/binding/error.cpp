#include "binding/error.h"

namespace fermata {

Refusal invalid_argument(const std::string& message) {
    return Refusal("invalid_argument", message);
}

Napi::Error make_error(Napi::Env env, const std::string& code, const std::string& message) {
    Napi::Error error = Napi::Error::New(env, message);
    error.Set("code", Napi::String::New(env, code));
    return error;
}

}  // namespace fermata
