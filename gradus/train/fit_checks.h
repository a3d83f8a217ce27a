/// Checks of fit's options before anything is trained.
#pragma once
#include "gradus/train/fit.h"

namespace gradus {

using detail::Task;

/// InvalidArgument for options that do not fit together, or to the data set and the task.
void check_fit_options(const FitOptions& options, const Task& task, const Pipeline& dataset);

/// Options for the first steps of the first epoch, without what is on the disk.
FitOptions for_trial(FitOptions options);

/// Checks that ranks have the same options; otherwise they would wait for each other in vain.
void check_alike(const FitOptions& options);

}  // namespace gradus
