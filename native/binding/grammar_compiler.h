// Compiles grammars for the vocabulary of one model. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/matcher.h"
#include "core/result.h"
#include "guidance/lark_compiler.h"
#include "llama/model.h"

namespace fermata {

enum class GrammarKind : std::uint8_t { kLark, kGbnf };

class GrammarCompiler {
   public:
    explicit GrammarCompiler(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

    // The first call describes the vocabulary; calls beside it wait for that.
    // Errors: grammar_invalid, grammar_too_large.
    Result<std::shared_ptr<const Grammar>> compile(GrammarKind kind, const std::string& text);

   private:
    using Lark = Result<std::shared_ptr<const LarkCompiler>>;
    Lark lark();

    std::shared_ptr<const Model> model_;
    std::mutex mutex_;
    std::optional<Lark> lark_;
};

}  // namespace fermata
