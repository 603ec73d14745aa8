// Reads the fields of a JavaScript object. Whatever is missing, of another type or out of range
// throws a Refusal `invalid_argument` that names the field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding/error.h"
#include "binding/node_api.h"
#include "core/types.h"

namespace fermata {

class Fields {
   public:
    // `path` is how messages name the object; empty for the outermost one.
    Fields(const Napi::Value& value, std::string path);

    bool has(const char* name) const;
    Napi::Value get(const char* name) const { return object_.Get(name); }
    bool boolean(const char* name) const;
    std::string text(const char* name) const;
    std::vector<std::string> texts(const char* name, std::uint32_t most) const;
    // A finite number; bounds are inclusive here and below.
    double number(const char* name, double lowest, double highest) const;
    std::int64_t integer(const char* name, std::int64_t lowest, std::int64_t highest) const;
    std::int32_t int32(const char* name, std::int32_t lowest, std::int32_t highest) const;
    // The same where the field may be absent, which leaves `into` at its default.
    void read(const char* name, bool& into) const;
    void read(const char* name, float& into, double lowest, double highest) const;
    void read(const char* name, std::int32_t& into, std::int32_t lowest,
              std::int32_t highest) const;
    // An Int32Array of ids below `vocabulary_size`.
    std::vector<Token> tokens(const char* name, std::int32_t vocabulary_size) const;
    Fields object(const char* name) const;
    Napi::Array array(const char* name) const;

    template <class Choice>
    Choice choice(const char* name,
                  std::initializer_list<std::pair<const char*, Choice>> choices) const {
        const std::string value = text(name);
        for (const auto& [spelling, choice] : choices) {
            if (value == spelling) return choice;
        }
        throw refused(name, "has an unknown value");
    }

    Refusal refused(const char* name, const std::string& what) const;

   private:
    Napi::Object object_;
    std::string path_;
};

// As Fields::tokens, of a value that is no field.
std::vector<Token> to_tokens(const Napi::Value& value, const std::string& name,
                             std::int32_t vocabulary_size);

}  // namespace fermata
