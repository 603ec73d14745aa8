#include "binding/grammar_compiler.h"

#include "llama/describe_vocabulary.h"
#include "llama/gbnf_grammar.h"

namespace fermata {

Result<std::shared_ptr<const Grammar>> GrammarCompiler::compile(GrammarKind kind,
                                                                const std::string& text) {
    if (kind == GrammarKind::kGbnf) return compile_gbnf(model_, text);
    Lark compiler = lark();
    if (!compiler.ok()) return compiler.error();
    return compiler.value()->compile(text);
}

GrammarCompiler::Lark GrammarCompiler::lark() {
    const std::lock_guard lock(mutex_);
    if (!lark_) {
        lark_ = LarkCompiler::available() ? LarkCompiler::create(describe_vocabulary(model_))
                                          : LarkCompiler::create({});
    }
    return *lark_;
}

}  // namespace fermata
