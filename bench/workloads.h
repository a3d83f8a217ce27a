/// The workloads of WORKLOADS.md, each as a user of the library would write it.
#pragma once
#include <functional>
#include <map>
#include <string>
#include "bench/measurement.h"
#include "gradus/function/traced_function.h"

namespace gradus::bench {

/// With what the functions of all workloads are compiled: --disable.
inline FunctionOptions function_options;

using Workloads = std::map<std::string, std::function<Figures()>>;

void add_mlp(Workloads& workloads);      // mlp_tiny..., mlp_big, mlp_big_bf16, predict_b1, retrace, profiled, cold_mlp
void add_updates(Workloads& workloads);  // accumulate, adamw_update
void add_derivatives(Workloads& workloads);  // jacobian, input_grad, pegn
void add_chain(Workloads& workloads);        // eager_chain
void add_cnn(Workloads& workloads);          // cnn, dwsep
void add_gpt(Workloads& workloads);          // gpt, gpt_bf16
void add_generate(Workloads& workloads);     // generate, generate_b8, generate_growing
void add_recurrent(Workloads& workloads);    // lstm, gru, simple_rnn
void add_pipeline(Workloads& workloads);     // pipeline
void add_images(Workloads& workloads);       // images
void add_fit(Workloads& workloads);          // fit
void add_smaller(Workloads& workloads);      // channels, low_rank
void add_limits(Workloads& workloads);       // limits, busy
void add_ops(Workloads& workloads);          // ops

}  // namespace gradus::bench
