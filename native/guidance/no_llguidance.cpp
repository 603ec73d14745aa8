// LarkCompiler in a build without llguidance.
#include "guidance/lark_compiler.h"

namespace fermata {

bool LarkCompiler::available() {
    return false;
}

Result<std::shared_ptr<const LarkCompiler>> LarkCompiler::create(VocabularyDescription) {
    return Error{ErrorCode::kGrammarInvalid,
                 "This build has no llguidance, only GBNF grammars work: cargo 1.87 or newer was "
                 "missing when it was set up. Install Rust and run `node scripts/setup.mjs`."};
}

}  // namespace fermata
