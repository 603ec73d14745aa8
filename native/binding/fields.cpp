#include "binding/fields.h"

#include <cmath>
#include <limits>

namespace fermata {

namespace {

// Beyond it not every whole number has a double of its own.
constexpr std::int64_t kMaxSafeInteger = (std::int64_t{1} << 53) - 1;

std::string shown(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
}

}  // namespace

Fields::Fields(const Napi::Value& value, std::string path) : path_(std::move(path)) {
    if (!value.IsObject()) {
        throw invalid_argument((path_.empty() ? "The argument" : path_) + " must be an object.");
    }
    object_ = value.As<Napi::Object>();
}

Refusal Fields::refused(const char* name, const std::string& what) const {
    return invalid_argument((path_.empty() ? "" : path_ + ".") + name + " " + what + ".");
}

bool Fields::has(const char* name) const {
    return !get(name).IsUndefined();
}

bool Fields::boolean(const char* name) const {
    const Napi::Value value = get(name);
    if (!value.IsBoolean()) throw refused(name, "must be true or false");
    return value.As<Napi::Boolean>().Value();
}

std::string Fields::text(const char* name) const {
    const Napi::Value value = get(name);
    if (!value.IsString()) throw refused(name, "must be a string");
    return value.As<Napi::String>().Utf8Value();
}

std::vector<std::string> Fields::texts(const char* name, std::uint32_t most) const {
    const Napi::Array values = array(name);
    const std::uint32_t count = values.Length();
    if (count > most) throw refused(name, "has more than " + std::to_string(most) + " entries");
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < count; ++i) {
        const Napi::Value value = values.Get(i);
        if (!value.IsString()) throw refused(name, "must hold strings");
        texts.push_back(value.As<Napi::String>().Utf8Value());
        if (texts.back().empty()) throw refused(name, "must not hold an empty string");
    }
    return texts;
}

double Fields::number(const char* name, double lowest, double highest) const {
    const Napi::Value value = get(name);
    const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
    if (!std::isfinite(number) || number < lowest || number > highest) {
        throw refused(name, "must be a number from " + shown(lowest) + " to " + shown(highest));
    }
    return number;
}

std::int64_t Fields::integer(const char* name, std::int64_t lowest, std::int64_t highest) const {
    const double value = number(name, static_cast<double>(std::max(lowest, -kMaxSafeInteger)),
                                static_cast<double>(std::min(highest, kMaxSafeInteger)));
    if (value != std::floor(value)) throw refused(name, "must be a whole number");
    return static_cast<std::int64_t>(value);
}

std::int32_t Fields::int32(const char* name, std::int32_t lowest, std::int32_t highest) const {
    return static_cast<std::int32_t>(integer(name, lowest, highest));
}

void Fields::read(const char* name, bool& into) const {
    if (has(name)) into = boolean(name);
}

void Fields::read(const char* name, float& into, double lowest, double highest) const {
    if (has(name)) into = static_cast<float>(number(name, lowest, highest));
}

void Fields::read(const char* name, std::int32_t& into, std::int32_t lowest,
                  std::int32_t highest) const {
    if (has(name)) into = int32(name, lowest, highest);
}

std::vector<Token> Fields::tokens(const char* name, std::int32_t vocabulary_size) const {
    return to_tokens(get(name), path_.empty() ? name : path_ + "." + name, vocabulary_size);
}

Fields Fields::object(const char* name) const {
    return Fields(get(name), path_.empty() ? name : path_ + "." + name);
}

Napi::Array Fields::array(const char* name) const {
    const Napi::Value value = get(name);
    if (!value.IsArray()) throw refused(name, "must be an array");
    return value.As<Napi::Array>();
}

std::vector<Token> to_tokens(const Napi::Value& value, const std::string& name,
                             std::int32_t vocabulary_size) {
    if (!value.IsTypedArray() ||
        value.As<Napi::TypedArray>().TypedArrayType() != napi_int32_array) {
        throw invalid_argument(name + " must be an Int32Array.");
    }
    const auto array = value.As<Napi::Int32Array>();
    // Copied before it is checked: another thread may write to shared memory.
    std::vector<Token> tokens(array.Data(), array.Data() + array.ElementLength());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] < 0 || tokens[i] >= vocabulary_size) {
            throw invalid_argument(name + "[" + std::to_string(i) +
                                   "] is no token of this model: " + std::to_string(tokens[i]) +
                                   ".");
        }
    }
    return tokens;
}

}  // namespace fermata
