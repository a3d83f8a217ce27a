/// fit, evaluate and predict on models, losses and data sets without types.
///
/// `Task::examine` runs a batch through model and loss. It is called while the step is traced, in the mode of the
/// training or of the validation:
///
///   erased::Task task{.fields = 2};
///   const erased::OneOutput parts{.inputs = 1, .call = [&](erased::In in) { return call(in[0]); },
///                                 .loss = [&](auto& y, auto& prediction, auto&) { return loss(y, prediction); }};
///   task.examine = [&](erased::In fields) { return erased::examine(model.layer_behind(), parts, fields); };
///   task.build = [&](const std::vector<Spec>& specs, CallMode mode) {
///     return erased::build_all(model.layer_behind(), std::span(specs).first(1), mode);
///   };
///   const History history = erased::fit(model, optimizer, task, pipeline, {.epochs = 3});
#pragma once
#include "gradus/erased/data.h"
#include "gradus/train/fit.h"

namespace gradus::erased {

/// Model, loss and fields of a training.
using detail::Task;
/// A model with one output and its loss; `examine` runs a batch through them, as fit of gradus.h does.
using detail::examine;
using detail::OneOutput;
/// The result of one batch through model and loss.
using detail::Examined;
/// A model's call and the rest of the step, in which the loss may run layers of its own.
using gradus::detail::StepScope;
/// Builds a model for these inputs.
using gradus::build_all;
/// Adds the penalties that the model's layers ask for, and clears them.
using detail::add_penalties;
/// Trains a model, as fit of gradus.h does.
using detail::fit;
/// Loss and metrics in inference mode, as evaluate of gradus.h.
using detail::evaluate;
/// The results of a model, joined along axis 0, as predict of gradus.h.
using detail::predict;

}  // namespace gradus::erased
