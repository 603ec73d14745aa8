// Grammars in llguidance's Lark dialect, with JSON Schema inside (%json). In a build without
// llguidance every compile is refused, with the remedy.
#pragma once

#include <memory>
#include <string>

#include "core/matcher.h"
#include "core/result.h"
#include "core/vocabulary_description.h"

namespace fermata {

class LarkCompiler {
   public:
    // false: built without llguidance.
    static bool available();
    // Takes some hundred milliseconds for a large vocabulary.
    // Errors: invalid_argument, for a vocabulary that llguidance cannot describe.
    static Result<std::shared_ptr<const LarkCompiler>> create(VocabularyDescription vocabulary);

    virtual ~LarkCompiler() = default;
    // Safe from every thread. Time and memory are bounded whatever the text is.
    // Errors: grammar_invalid, with llguidance's message; grammar_too_large.
    virtual Result<std::shared_ptr<const Grammar>> compile(const std::string& lark) const = 0;
};

}  // namespace fermata
