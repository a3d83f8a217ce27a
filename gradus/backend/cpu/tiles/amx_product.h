/// The driver of products by AMX.
#pragma once
#include <cstdint>
#include "gradus/backend/cpu/tiles/plan.h"

namespace gradus::cpu_backend {

/// run_units (product.h) of a plan whose form is AMX's. The tiles are configured when it begins and released when it
/// ends: nothing of them outlives a call, so a thread that waits has no large state to be saved.
void run_amx(const Plan& plan, const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end,
             void* scratch, const Epilogue& epilogue);

}  // namespace gradus::cpu_backend
