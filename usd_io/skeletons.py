"""Meshes that skeletons and blend shapes deform: where their points are at a time code."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import InputError


class SkinnedMesh:
    """What UsdSkel does to the points of one mesh.

    Args:
        prim: The mesh.
        query: Its `UsdSkel.SkinningQuery`.
        skeleton: The `UsdSkel.SkeletonQuery` of the skeleton that it is bound to.

    Attributes:
        space: Prim in whose space the deformed points are: the skeleton's where joints move them, else the mesh's.
    """

    def __init__(self, prim: Any, query: Any, skeleton: Any) -> None:
        self.prim, self.query, self.skeleton = prim, query, skeleton
        self.animation = skeleton.GetAnimQuery()
        self.jointed = bool(query.HasJointInfluences())
        self.blended = bool(query.HasBlendShapes() and self.animation and self.animation.GetBlendShapeOrder())
        self.space = skeleton.GetPrim() if self.jointed else prim
        # the query's own time samples cannot be asked for: it raises where one of these is not authored
        weights = (query.GetJointWeightsPrimvar(), query.GetJointIndicesPrimvar())
        attributes = (query.GetGeomBindTransformAttr(), *(each.GetAttr() for each in weights if each))
        self._bound = [each for each in attributes if each]

    def points(self, where: str, rest: np.ndarray, code: float) -> Any:
        """Return the deformed points (`Vt.Vec3fArray`) at a time code, in `space`; blend shapes come before joints.

        Args:
            where: What messages call the mesh.
            rest: Its points as authored, shape (n, 3).
            code: Time code.

        Raises:
            InputError: The mesh and its skeleton do not fit together.
        """
        from pxr import Vt

        held = Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(rest, np.float32))
        if self.blended and not self._blend(held, code):
            raise InputError(f"{where}: its blend shapes do not fit its {len(held)} points; export mesh and shapes again")
        if self.jointed:
            matrices = self.skeleton.ComputeSkinningTransforms(code)
            if not (self.skeleton.HasBindPose() and matrices) or not self.query.ComputeSkinnedPoints(matrices, held, code):
                raise InputError(
                    f"{where}: its joints or weights do not fit skeleton {self.skeleton.GetPrim().GetPath()}; "
                    "export both again, or bake the skinning into points"
                )
        return held

    def _blend(self, points: Any, code: float) -> bool:
        """Move points by the blend shapes; return whether that could be done."""
        from pxr import UsdSkel

        shapes = UsdSkel.BlendShapeQuery(UsdSkel.BindingAPI(self.prim))
        weights = self.query.GetBlendShapeMapper().Remap(self.animation.ComputeBlendShapeWeights(code))
        return bool(
            weights is not None
            and (found := shapes.ComputeSubShapeWeights(weights)) is not None
            and shapes.ComputeDeformedPoints(
                *found, shapes.ComputeBlendShapePointIndices(), shapes.ComputeSubShapePointOffsets(), points
            )
        )

    def samples(self) -> set[float]:
        """Return the time codes at which anything that deforms the mesh has samples; joints of the skeleton, not its transform."""
        codes = {code for attribute in self._bound for code in attribute.GetTimeSamples()}
        if self.animation and self.jointed:
            codes.update(self.animation.GetJointTransformTimeSamples())
        if self.blended:
            codes.update(self.animation.GetBlendShapeWeightTimeSamples())
        return codes

    def varies(self) -> bool:
        """Whether the deformation may change with time."""
        moved = self.animation and self.jointed and self.animation.JointTransformsMightBeTimeVarying()
        blended = self.blended and self.animation.BlendShapeWeightsMightBeTimeVarying()
        return bool(moved or blended or any(each.ValueMightBeTimeVarying() for each in self._bound))


class SkinnedMeshes:
    """The skins of a stage's meshes; each SkelRoot is looked through once."""

    def __init__(self) -> None:
        from pxr import UsdSkel

        self._cache = UsdSkel.Cache()
        self._roots: set[Any] = set()

    def of(self, prim: Any) -> SkinnedMesh | None:
        """Return what deforms a mesh, or None: skinning counts below a SkelRoot only, as for renderers."""
        from pxr import Usd, UsdSkel

        root = UsdSkel.Root.Find(prim)
        if not root:
            return None
        if root.GetPath() not in self._roots:
            self._roots.add(root.GetPath())
            self._cache.Populate(root, Usd.TraverseInstanceProxies())
        query, bound = self._cache.GetSkinningQuery(prim), UsdSkel.BindingAPI(prim).GetInheritedSkeleton()
        skeleton = self._cache.GetSkelQuery(bound) if bound else None
        if not (query and skeleton) or not (query.HasJointInfluences() or query.HasBlendShapes()):
            return None
        return SkinnedMesh(prim, query, skeleton)
