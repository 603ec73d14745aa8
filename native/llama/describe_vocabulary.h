// A model's vocabulary for engines of grammars.
#pragma once

#include <memory>

#include "core/vocabulary_description.h"
#include "llama/model.h"

namespace fermata {

// Tokens of kind USER_DEFINED are their text; control and end tokens match no text. The result
// keeps the model.
VocabularyDescription describe_vocabulary(std::shared_ptr<const Model> model);

}  // namespace fermata
