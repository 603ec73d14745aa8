// Layers behind a model's last one that say the token after the next (multi-token prediction,
// nextn_predict_layers in a file).
#pragma once

#include <string>

#include "llama/model.h"

namespace fermata {

// Why they cannot draft; empty if they can. Of a model that was loaded with them.
std::string mtp_problem(const Model& model);

// llama.cpp gives their states of rows with logits alone; of the others, of all rows.
bool mtp_states_of_logits(const Model& model);

}  // namespace fermata
