#include "llama/gbnf_grammar.h"

namespace fermata {

Result<std::shared_ptr<const Grammar>> compile_gbnf(std::shared_ptr<const Model>,
                                                    const std::string&) {
    return Error{ErrorCode::kGrammarInvalid, "GBNF grammars are not supported yet."};
}

}  // namespace fermata
