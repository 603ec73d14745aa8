// C++ failures as JavaScript errors with a `code`.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "binding/node_api.h"

namespace fermata {

// Thrown inside binding/ only.
class Refusal : public std::exception {
   public:
    Refusal(std::string code, std::string message)
        : code_(std::move(code)), message_(std::move(message)) {}

    const std::string& code() const { return code_; }
    const char* what() const noexcept override { return message_.c_str(); }

   private:
    std::string code_;
    std::string message_;
};

// For values that JavaScript should not have passed.
Refusal invalid_argument(const std::string& message);

Napi::Error make_error(Napi::Env env, const std::string& code, const std::string& message);

// `body` as a function for JavaScript: no C++ exception leaves it.
template <class Body>
auto guarded(Body body) {
    return [body = std::move(body)](const Napi::CallbackInfo& info) mutable -> Napi::Value {
        try {
            return body(info);
        } catch (const Napi::Error&) {
            throw;
        } catch (const Refusal& refusal) {
            throw make_error(info.Env(), refusal.code(), refusal.what());
        } catch (const std::exception& failure) {
            throw make_error(info.Env(), "internal", failure.what());
        }
    };
}

}  // namespace fermata
